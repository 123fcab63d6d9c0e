"""One client process that follows generations: what it has seen of each, and the next pack for it.

Knows cursors and packs. There is no queue to overflow: the logs are the queue, and a slow reader only falls
behind in them; of progress events it sees the latest. Does not know gRPC.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from inference.errors import GenerationUnknown, InvalidRequest, QueueFull
from inference.front.generation import Generation
from inference.proto import engine_pb2 as pb

# Small enough that many generations share a pack fairly, large enough that a long replay is quick.
MAX_PACK_BYTES = 256 * 1024
MAX_ATTACHED = 10_000
# To read a pack costs the client about as much as ten events. A step is longer than this; news that come one by one,
# as from a gateway's many answers, share a pack instead.
PACK_EVERY_S = 0.005
# A client that asks for nonsense and does not read the answers: its stream is ended.
MAX_UNREAD_REFUSALS = 10_000

FindGeneration = Callable[[str], Generation | None]


class ClientSession:
    """Wakes when an attached generation has news. Everything of one engine step leaves in one pack."""

    def __init__(self, find: FindGeneration) -> None:
        self._find = find
        self._cursors: dict[str, int] = {}
        self._shown: dict[str, pb.Event] = {}
        self._news: dict[str, None] = {}  # an ordered set: oldest news first
        self._failed: list[pb.Event] = []
        self._wake = asyncio.Event()
        self._is_ending = False
        self._next_pack_at = 0.0

    def end(self) -> None:
        """What is logged is still delivered; then `next_pack` gives None."""
        self._is_ending = True
        self._wake.set()

    def obey(self, command: pb.SessionCommand) -> None:
        """Every command that cannot be followed gets one refusal; the stream and its other followers go on."""
        if self._is_ending:
            return
        if command.HasField("attach"):
            self.attach(command.attach.generation_id, command.attach.after)
        elif command.HasField("detach"):
            self.detach(command.detach.generation_id)
        else:
            self._refuse("", InvalidRequest.code, "a command that this engine does not know")

    def attach(self, generation_id: str, after: int) -> None:
        """Follows from `after`; attaching again never skips events that were not sent yet."""
        generation = self._find(generation_id)
        if generation is None:
            self._refuse(generation_id, GenerationUnknown.code, f"no generation {generation_id!r} here")
        elif len(self._cursors) >= MAX_ATTACHED and generation_id not in self._cursors:
            self._refuse(
                generation_id, QueueFull.code, f"one client follows at most {MAX_ATTACHED} generations"
            )
        else:
            cursor = min(after, self._cursors.get(generation_id, after))
            if _is_past(generation, cursor):
                self._refuse(generation_id, GenerationUnknown.code, f"it ended before event {cursor + 1}")
                return
            self._cursors[generation_id] = cursor
            generation.follow(self)
            self.notice(generation_id)

    def detach(self, generation_id: str) -> None:
        if self._cursors.pop(generation_id, None) is None:
            return
        self._shown.pop(generation_id, None)
        generation = self._find(generation_id)
        if generation is not None:
            generation.unfollow(self)

    def close(self) -> None:
        for generation_id in list(self._cursors):
            self.detach(generation_id)

    def notice(self, generation_id: str) -> None:
        self._news[generation_id] = None
        self._wake.set()

    async def next_pack(self) -> pb.EventPack | None:
        """Waits for news; never empty, and no more often than is useful. None after `end`, when all was delivered."""
        loop = asyncio.get_running_loop()
        while True:
            await self._wake.wait()
            if (too_early_s := self._next_pack_at - loop.time()) > 0:
                await asyncio.sleep(too_early_s)
            events = self._collect()
            if events:
                # What is left of a long log does not wait.
                self._next_pack_at = 0.0 if self._news else loop.time() + PACK_EVERY_S
                return pb.EventPack(events=events)
            if self._is_ending:
                return None

    def _collect(self) -> list[pb.Event]:
        events, self._failed = self._failed, []
        num_bytes = 0
        while self._news and num_bytes < MAX_PACK_BYTES:
            generation_id = next(iter(self._news))
            del self._news[generation_id]
            fresh = self._events_of(generation_id, MAX_PACK_BYTES - num_bytes)
            num_bytes += sum(event.ByteSize() for event in fresh)
            events += fresh
        if not self._news and not self._is_ending:
            self._wake.clear()
        return events

    def _events_of(self, generation_id: str, max_bytes: int) -> list[pb.Event]:
        generation = self._find(generation_id)
        if generation_id not in self._cursors:
            return []
        if generation is None:  # a reader so slow that the log went before it was sent
            self.detach(generation_id)
            return [_refusal(generation_id, GenerationUnknown.code, "its log is no longer kept")]
        cursor = self._cursors[generation_id]
        if _is_past(generation, cursor):  # it was asked for events that never came
            self.detach(generation_id)
            return [_refusal(generation_id, GenerationUnknown.code, f"it ended before event {cursor + 1}")]
        fresh = generation.log.after(cursor, max_bytes)
        if not fresh:
            return self._progress_of(generation)
        self._cursors[generation_id] = fresh[-1].seq
        if fresh[-1].seq < generation.log.last_seq:
            self._news[generation_id] = None
        elif generation.log.is_done:
            self.detach(generation_id)
        return fresh

    def _progress_of(self, generation: Generation) -> list[pb.Event]:
        progress = generation.progress
        if progress is None or self._shown.get(generation.id) is progress:
            return []
        self._shown[generation.id] = progress
        return [progress]

    def _refuse(self, generation_id: str, code: str, message: str) -> None:
        self._failed.append(_refusal(generation_id, code, message))
        self._wake.set()
        if len(self._failed) >= MAX_UNREAD_REFUSALS:
            self.end()


def _is_past(generation: Generation, cursor: int) -> bool:
    """Whether nothing can ever follow `cursor`."""
    return generation.log.is_done and cursor >= generation.log.last_seq


def _refusal(generation_id: str, code: str, message: str) -> pb.Event:
    return pb.Event(generation_id=generation_id, attach_failed=pb.AttachFailed(code=code, message=message))
