"""One generation in the front: tokens in, text out, from acceptance to its last event.

Knows its own log, detokenizer, stop strings, clock and followers. Does not know the core's pipe or gRPC:
`front.engine` moves tokens in and commands out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from inference.core.messages import FinishedOut, TokenOut
from inference.errors import BY_CODE
from inference.front.detokenizer import Detokenizer
from inference.front.log import EventLog
from inference.front.repetition import RepetitionDetector
from inference.front.stops import StopFilter
from inference.front.tokenizer import Tokenizer
from inference.proto import engine_pb2 as pb
from inference.types import FinishReason, Owner

Clock = Callable[[], float]

# What only the core can count; its other figures are the front's too.
CORE_USAGE = (
    "reused_head_tokens", "reused_prefix_tokens", "reused_shared_tokens", "reused_disk_tokens", "prefilled_tokens",
    "peak_kv_bytes", "block_seconds", "device_seconds",
)  # fmt: skip


class State(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    ENDING = "ending"  # text is final; the core's last figures are awaited
    ENDED = "ended"


_MOVES = {
    State.QUEUED: {State.RUNNING, State.ENDING, State.ENDED},
    State.RUNNING: {State.ENDING, State.ENDED},
    State.ENDING: {State.ENDED},
    State.ENDED: set(),
}


@dataclass(frozen=True, slots=True)
class Ending:
    """Why a generation ends, decided by the front before the core knows."""

    reason: FinishReason
    error_code: str = ""
    error_message: str = ""


RESTARTED = Ending(FinishReason.FAILED, "engine_restarted", "the engine was restarted in mid-answer")
STOPPING = Ending(FinishReason.FAILED, "engine_stopped", "the engine is shutting down")
OVERDUE = Ending(FinishReason.FAILED, "deadline_exceeded", "the answer was not complete within its deadline")
CANCELLED = Ending(FinishReason.CANCELLED)
ORPHANED = Ending(FinishReason.ORPHANED)


@dataclass(frozen=True, slots=True)
class GenerationLimits:
    """Where an answer ends. One whose log gets larger than `max_log_bytes` ends as if its length were reached.

    Before `min_tokens` neither a stop string nor a repetition ends it; a stop string is looked for in what comes then.
    `shown_ids` are special tokens whose names are text of the answer. Behind `begun_ids` it goes on.
    """

    deadline_s: float
    max_log_bytes: int
    stops: tuple[str, ...] = ()
    stop_ids: frozenset[int] = frozenset()
    wants_logprobs: bool = False
    min_tokens: int = 0
    repetition_tokens: int = 0
    shown_ids: frozenset[int] = frozenset()
    begun_ids: tuple[int, ...] = ()


class Follower(Protocol):
    """Somebody who wants to know that there is news; `front.sessions` has the real one."""

    def notice(self, generation_id: str) -> None: ...


class Generation:
    """QUEUED -> RUNNING -> ENDING -> ENDED; what has left as a delta never changes."""

    def __init__(
        self,
        generation_id: str,
        prompt_tokens: int,
        limits: GenerationLimits,
        *,
        tokenizer: Tokenizer,
        clock: Clock,
        trimmed_messages: int = 0,
    ) -> None:
        self.id = generation_id
        self.owner: Owner | None = None  # by whom the log is forgotten
        self.prompt_tokens = prompt_tokens
        self.trimmed_messages = trimmed_messages
        self.unread_tokens = prompt_tokens  # of the prompt, as far as the core has told
        self.log = EventLog(generation_id)
        self.state = State.QUEUED
        self.progress: pb.Event | None = None
        self.ending: Ending | None = None
        self.followers: set[Follower] = set()
        self.num_visible_tokens = 0
        self._num_taken_tokens = 0
        self._tokenizer = tokenizer
        self.stop_ids = limits.stop_ids
        self._ignored_ids = limits.stop_ids | (tokenizer.special_ids - limits.shown_ids)
        self._detokenizer = Detokenizer(tokenizer, limits.begun_ids)
        self._stops = StopFilter(limits.stops)
        self._repetition = RepetitionDetector(limits.repetition_tokens)
        self._unreleased: deque[tuple[int, list[TokenOut]]] = deque()  # (characters, tokens that make them)
        self._undecoded: list[TokenOut] = []
        self._fresh: list[tuple[str, list[TokenOut]]] = []
        self._limits = limits
        self._clock = clock
        self.accepted_at = self.unattended_since = clock()
        self.deadline_at = self.accepted_at + limits.deadline_s
        self.started_at = self.ended_at = 0.0
        self._ttft_s = 0.0

    @property
    def is_live(self) -> bool:
        return self.state is not State.ENDED

    def move(self, state: State) -> None:
        assert state in _MOVES[self.state], f"{self.state} -> {state}"
        self.state = state

    def follow(self, follower: Follower) -> None:
        self.followers.add(follower)

    def unfollow(self, follower: Follower) -> None:
        self.followers.discard(follower)
        self.unattended_since = self._clock()

    def show_queued(self, position: int) -> None:
        self._show(pb.Event(generation_id=self.id, queued=pb.Queued(position=position)))

    def show_prefill(self, done: int, total: int) -> None:
        self._start()
        self.unread_tokens = total - done
        self._show(pb.Event(generation_id=self.id, prefill=pb.Prefill(done=done, total=total)))

    def take(self, out: TokenOut) -> None:
        """Adds one token; afterwards `ending` may say that the text is complete."""
        self._start()
        self.unread_tokens = 0
        if self.state is not State.RUNNING:
            return
        if out.token in self._ignored_ids:
            return
        self._num_taken_tokens += 1
        is_circling = self._repetition.push(out.token)
        self._undecoded.append(out)
        is_stopped = self._show_text(self._detokenizer.push(out.token))
        if is_stopped:
            self.end_soon(Ending(FinishReason.STOP))
        elif is_circling and self._may_stop:
            self.end_soon(Ending(FinishReason.REPETITION))
        elif self.log.num_bytes > self._limits.max_log_bytes:
            self.end_soon(Ending(FinishReason.LENGTH))

    def publish(self) -> None:
        """Logs what this step made visible, as one delta."""
        if not self._fresh:
            return
        tokens = [out for _, outs in self._fresh for out in outs]
        delta = pb.Delta(
            text="".join(text for text, _ in self._fresh), token_ids=[out.token for out in tokens]
        )
        if self._limits.wants_logprobs:
            delta.logprobs.extend(self._logprob(out) for out in tokens)
        self._fresh.clear()
        if not self._ttft_s:
            self._ttft_s = self._clock() - self.accepted_at
        self.progress = None
        self.log.append_delta(delta)
        self._notify()

    def end_soon(self, ending: Ending) -> None:
        """Freezes the text. Held text that is whole leaves; half a character does not."""
        if self.state in (State.ENDING, State.ENDED):
            return
        if ending.reason is not FinishReason.STOP:
            self._release(self._stops.flush())
        self.ending = ending
        self.move(State.ENDING)
        self.publish()

    def finish(self, out: FinishedOut) -> None:
        """The core has let the sequence go: flush, and log the last event with the core's figures."""
        if self.state is State.ENDED:
            return
        if self.ending is None:
            self.ending = self._flushed(out)
        usage = self._own_usage()
        usage.MergeFrom(pb.Usage(**{name: getattr(out, name) for name in CORE_USAGE}))
        usage.unseen_tokens = max(0, out.generated_tokens - self._num_taken_tokens)
        timings = pb.Timings(
            queue_s=out.queue_s, prefill_s=out.prefill_s, decode_s=out.decode_s, ttft_s=self._ttft_s
        )
        self._end(usage, timings)

    def abandon(self, ending: Ending) -> None:
        """Ends without the core, which is gone. What was delivered stays in the log."""
        if self.state is State.ENDED:
            return
        self.end_soon(ending)
        self._end(self._own_usage(), pb.Timings(ttft_s=self._ttft_s))

    def _own_usage(self) -> pb.Usage:
        """What the front knows by itself; a token without text, as an end token is, counts as none."""
        return pb.Usage(
            prompt_tokens=self.prompt_tokens,
            generated_tokens=self._num_taken_tokens,
            trimmed_messages=self.trimmed_messages,
        )

    def _start(self) -> None:
        if self.state is State.QUEUED:
            self.move(State.RUNNING)
            self.started_at = self._clock()

    @property
    def _may_stop(self) -> bool:
        return self._num_taken_tokens >= self._limits.min_tokens

    def _show_text(self, text: str) -> bool:
        """Passes decoded text on to the stop strings and, as far as they let it, to the reader; True at a stop."""
        if not text:
            return False
        num_ready = len(self._undecoded) - self._detokenizer.num_pending
        self._unreleased.append((len(text), self._undecoded[:num_ready]))
        del self._undecoded[:num_ready]
        visible, is_stopped = self._stops.push(text) if self._may_stop else (text, False)
        self._release(visible)
        return is_stopped

    def break_off(self, ending: Ending) -> None:
        """Ends with what is in the log already: for one whose own parts can't be trusted any more."""
        if self.state is State.ENDED:
            return
        self.ending = self.ending or ending
        self._fresh.clear()
        self._end(self._own_usage(), pb.Timings(ttft_s=self._ttft_s))

    def _flushed(self, out: FinishedOut) -> Ending:
        is_stopped = self._show_text(self._detokenizer.flush())
        if not is_stopped:
            self._release(self._stops.flush())
        self.publish()
        if is_stopped:
            return Ending(FinishReason.STOP)
        reason = FinishReason(out.reason)
        return Ending(reason, *_split_error(out.error)) if reason is FinishReason.FAILED else Ending(reason)

    def _end(self, usage: pb.Usage, timings: pb.Timings) -> None:
        assert self.ending is not None
        done = pb.Done(
            finish_reason=self.ending.reason,
            error_code=self.ending.error_code,
            error_message=self.ending.error_message,
            usage=usage,
            timings=timings,
        )
        self.move(State.ENDED)
        self.progress = None
        self.ended_at = self._clock()
        self.log.append_done(done)
        self._notify()

    def _release(self, text: str) -> None:
        """Lets `text` leave; a token leaves with its last character."""
        if not text:
            return
        num_characters, tokens = len(text), []
        while self._unreleased and self._unreleased[0][0] <= num_characters:
            length, outs = self._unreleased.popleft()
            num_characters -= length
            tokens += outs
        if num_characters:
            length, outs = self._unreleased.popleft()
            self._unreleased.appendleft((length - num_characters, outs))
        self.num_visible_tokens += len(tokens)
        self._fresh.append((text, tokens))

    def _show(self, event: pb.Event) -> None:
        if self.log.last_seq == 0 and self.state is not State.ENDED:
            self.progress = event
            self._notify()

    def _notify(self) -> None:
        for follower in self.followers:
            follower.notice(self.id)

    def _logprob(self, out: TokenOut) -> pb.TokenLogprob:
        top = [
            pb.TokenLogprob(token_id=token, token=self._tokenizer.token_bytes(token), logprob=logprob)
            for token, logprob in out.top
        ]
        raw = self._tokenizer.token_bytes(out.token)
        return pb.TokenLogprob(token_id=out.token, token=raw, logprob=out.logprob, top=top)


def _split_error(error: str) -> tuple[str, str]:
    """(code, message): the core may put one of our codes before its text."""
    code, _, message = error.partition(": ")
    return (code, message) if code in BY_CODE else ("generation_failed", error)
