"""Many requests on their way through one engine, and the answers as they are complete.

Knows how many requests the engine should hold at once and how an event log becomes an answer. Does not know threads
(`offline.llm`) nor prompts (`offline.asking`).
"""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from inference.errors import EngineError
from inference.front.engine import Engine
from inference.front.log import EventLog
from inference.offline.asking import named
from inference.proto import convert
from inference.types import (
    Delta,
    Done,
    FinishReason,
    GenerateRequest,
    Segment,
    Timings,
    TokenLogprob,
    Usage,
)


@dataclass(frozen=True, slots=True)
class Answer:
    """A complete answer. `index` is the place of its prompt; one that FAILED has an `error_code` and its text so far.

    `token_ids` and `logprobs` are those of the visible text.
    """

    index: int
    text: str
    token_ids: tuple[int, ...]
    finish_reason: FinishReason
    usage: Usage
    timings: Timings
    logprobs: tuple[TokenLogprob, ...] = ()
    error_code: str = ""
    error_message: str = ""
    tokenizer: str = ""

    @property
    def segment(self) -> Segment:
        """This answer as a message of the next turn's history; its ids make the kept KV fit exactly."""
        return Segment("assistant", self.text, self.token_ids, self.tokenizer)


class Batch:
    """Satisfies `front.generation.Follower`. Takes the requests to the engine, some ahead of what the core can run."""

    def __init__(self, engine: Engine, requests: Sequence[GenerateRequest]) -> None:
        self._engine = engine
        self._places = {request.generation_id: place for place, request in enumerate(requests)}
        self._unsent = deque(requests)
        self._sent: set[str] = set()
        self._answers: asyncio.Queue[Answer] = asyncio.Queue()
        # Twice the batch: a place that gets free is taken in that step, and the engine's queue stays short.
        self._num_ahead = 2 * engine.config.max_batch

    async def check(self) -> None:
        """Raises the engine's objection to the first request that it could never take; nothing runs yet."""
        for request in self._unsent:
            try:
                await self._engine.check(request)
            except EngineError as error:
                place = self._places[request.generation_id]
                raise type(error)(named(error, place), retry_after_s=error.retry_after_s) from error

    async def next(self) -> Answer:
        """The next answer that is complete, whichever it is."""
        while self._unsent and len(self._sent) < self._num_ahead:
            await self._send(self._unsent.popleft())
        return await self._answers.get()

    def cancel(self) -> None:
        self._unsent.clear()
        for generation_id in list(self._sent):
            self._engine.cancel(generation_id, "nobody waits for it any more")

    def notice(self, generation_id: str) -> None:
        generation = self._engine.archive.find(generation_id)
        if generation is not None and generation.log.is_done and generation_id in self._sent:
            self._sent.remove(generation_id)
            tokenizer = self._engine.model.tokenizer.fingerprint
            self._answers.put_nowait(_as_answer(self._places[generation_id], generation.log, tokenizer))

    async def _send(self, request: GenerateRequest) -> None:
        self._sent.add(request.generation_id)  # first: whoever gives up meanwhile cancels this one too
        await self._engine.submit(request)
        generation = self._engine.archive.find(request.generation_id)
        assert generation is not None, "an accepted request has a log"
        generation.follow(self)
        self.notice(request.generation_id)


def _as_answer(place: int, log: EventLog, tokenizer: str) -> Answer:
    events = [convert.event_from_pb(event) for event in log.after(0, sys.maxsize)]
    deltas = [event for event in events if isinstance(event, Delta)]
    done = events[-1]
    assert isinstance(done, Done), "a log that is done ends with Done"
    return Answer(
        index=place,
        text="".join(delta.text for delta in deltas),
        token_ids=tuple(token for delta in deltas for token in delta.token_ids),
        finish_reason=done.finish_reason,
        usage=done.usage,
        timings=done.timings,
        logprobs=tuple(entry for delta in deltas for entry in delta.logprobs),
        error_code=done.error_code,
        error_message=done.error_message,
        tokenizer=tokenizer,
    )
