"""Embedding and verifying: a question to the core and the answer to it, matched by id.

Knows a bound on what waits. Does not know tokenizers; batches are made in the core.
"""

from __future__ import annotations

import asyncio
from typing import Any, TypeVar

from inference.core.messages import Embedded, EmbedTexts, StepPack, Verified, VerifyPairs
from inference.errors import EncoderFailed, EngineUnavailable, ModelLoading, QueueFull
from inference.front.core_process import CoreLink

# When full, further texts are refused: a text takes some milliseconds, so this is a wait of many seconds.
MAX_WAITING_TEXTS = 4096
RESTART_RETRY_S = 2.0

Answer = TypeVar("Answer", Embedded, Verified)


class Lane:
    def __init__(self, core: CoreLink) -> None:
        self._core = core
        self._embedding: dict[str, asyncio.Future[Embedded]] = {}
        self._verifying: dict[str, asyncio.Future[Verified]] = {}
        self._num_texts: dict[str, int] = {}  # in the core, also those that nobody waits for any more
        self._num_asked = 0

    @property
    def has_pending(self) -> bool:
        return bool(self._num_texts)

    async def embed(self, token_ids: list[list[int]]) -> Embedded:
        lane_id = self._next_id(len(token_ids))
        self._core.send(EmbedTexts(lane_id, token_ids))
        return await self._answer(self._embedding, lane_id)

    async def verify(self, token_ids: list[list[int]]) -> Verified:
        lane_id = self._next_id(len(token_ids))
        self._core.send(VerifyPairs(lane_id, token_ids))
        return await self._answer(self._verifying, lane_id)

    def on_step(self, step: StepPack) -> None:
        for embedded in step.embedded:
            self._num_texts.pop(embedded.id, None)
            _resolve(self._embedding.get(embedded.id), embedded)
        for verified in step.verified:
            self._num_texts.pop(verified.id, None)
            _resolve(self._verifying.get(verified.id), verified)

    def fail_all(self, message: str) -> None:
        self._num_texts.clear()
        futures: list[asyncio.Future[Any]] = [*self._embedding.values(), *self._verifying.values()]
        for future in futures:
            if not future.done():
                future.set_exception(EngineUnavailable(message))

    def _next_id(self, num_texts: int) -> str:
        if not self._core.is_ready:  # lost while the texts were encoded: nobody would ever answer
            raise ModelLoading("the core is starting", retry_after_s=RESTART_RETRY_S)
        if sum(self._num_texts.values()) + num_texts > MAX_WAITING_TEXTS:
            raise QueueFull(f"more than {MAX_WAITING_TEXTS} texts would wait", retry_after_s=1.0)
        self._num_asked += 1
        lane_id = f"lane:{self._num_asked}"
        self._num_texts[lane_id] = num_texts
        return lane_id

    async def _answer(self, waiting: dict[str, asyncio.Future[Answer]], lane_id: str) -> Answer:
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        waiting[lane_id] = future
        try:
            return await future
        finally:
            del waiting[lane_id]


def _resolve(future: asyncio.Future[Answer] | None, answer: Answer) -> None:
    if future is None or future.done():
        return
    if answer.error:
        future.set_exception(EncoderFailed(answer.error))  # the texts were checked before: no fault of theirs
    else:
        future.set_result(answer)
