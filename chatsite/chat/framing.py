"""From events to frames. Offsets on the wire count UTF-16 code units, because the page's strings do.

Knows events and frames; knows no socket.
"""

from __future__ import annotations

from uuid import UUID

from chatsite.chat import frames
from chatsite.chat.events import Accepted, Ended, Piece, Reading, ReplyEvent, Waiting
from chatsite.chat.following import Followed
from chatsite.chat.live import LiveAnswer, Snapshot
from chatsite.chat.store import Stored


def utf16_length(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


class Framer:
    """Makes the frames of one answer for one follower; counts what that follower has got, at first the text `held`."""

    def __init__(self, live: LiveAnswer, held: Snapshot | None = None) -> None:
        self._live = live
        self._length = utf16_length(held.text) if held is not None else 0
        self.has_ended = False

    def snapshot(self, found: Followed, snapshot: Snapshot) -> frames.SnapshotFrame:
        self._length = utf16_length(snapshot.text)
        return frames.SnapshotFrame(
            generation=self._live.generation,
            answer=found.answer,
            conversation=found.conversation,
            seq=snapshot.seq,
            text=snapshot.text,
            state=snapshot.state.value,
        )

    def frame(self, event: ReplyEvent) -> frames.FromServer | None:
        """None for events that the page hears of in another way."""
        match event:
            case Piece(generation, seq, _, text):
                offset, self._length = self._length, self._length + utf16_length(text)
                return frames.DeltaFrame(generation=generation, seq=seq, offset=offset, text=text)
            case Waiting(generation, position):
                return frames.QueuedFrame(generation=generation, position=position)
            case Reading(generation, done, total):
                return frames.PrefillFrame(generation=generation, done=done, total=total)
            case Ended():
                self.has_ended = True
                stored = self._live.stored_text
                return done_frame(event, self._length if stored is None else utf16_length(stored))
            case Accepted():
                return None


def done_frame(ended: Ended, length: int) -> frames.DoneFrame:
    counts, durations = ended.counts, ended.durations
    return frames.DoneFrame(
        generation=ended.generation,
        state=ended.state.value,
        finish_reason=ended.finish_reason,
        length=length,
        origin=ended.origin.value,
        model=ended.model,
        prompt_tokens=counts.prompt_tokens,
        reused_tokens=counts.reused_tokens,
        prefilled_tokens=counts.prefilled_tokens,
        generated_tokens=counts.generated_tokens,
        trimmed_messages=counts.trimmed_messages,
        ttft_ms=durations.ttft_ms,
        queue_ms=durations.queue_ms,
        prefill_ms=durations.prefill_ms,
        decode_ms=durations.decode_ms,
        delivery_ms=durations.delivery_ms,
        cache_age_s=ended.cache_age_s,
        cache_is_stale=ended.cache_is_stale,
        error_code=ended.error_code,
        error_message=ended.error_message,
        is_retryable=ended.is_retryable,
    )


def accepted_frame(client_message_id: UUID, stored: Stored) -> frames.AcceptedFrame:
    return frames.AcceptedFrame(
        client_message_id=client_message_id,
        generation=stored.generation,
        conversation=stored.conversation,
        user_message=stored.user_message,
        answer=stored.answer,
        parent=stored.parent,
        title=stored.title,
    )
