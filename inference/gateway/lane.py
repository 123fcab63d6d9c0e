"""The embedding and verifier lane beside an upstream: micro-batches in one thread, so that streams go on meanwhile.

Knows that a lane belongs to its thread and is touched nowhere else. Does not know encoders or how batches are made.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Protocol

from inference.core.lane import LaneStep
from inference.core.messages import EmbedTexts, VerifyPairs

Request = EmbedTexts | VerifyPairs


class Lane(Protocol):
    """`run_one` does one micro-batch; `has_work` says whether another is due at once."""

    @property
    def has_work(self) -> bool: ...
    def add(self, request: Request) -> None: ...
    def run_one(self) -> LaneStep: ...


class LaneWorker:
    """`answer` hears of every micro-batch, on the event loop."""

    def __init__(self, lane: Lane, thread: Executor, answer: Callable[[LaneStep], None]) -> None:
        self._lane = lane
        self._thread = thread
        self._answer = answer
        self._arrived: list[Request] = []
        self._has_arrived = asyncio.Event()

    def add(self, request: Request) -> None:
        self._arrived.append(request)
        self._has_arrived.set()

    async def run_for_ever(self) -> None:
        loop, has_more = asyncio.get_running_loop(), False
        while True:
            if not has_more:
                await self._has_arrived.wait()
            arrived, self._arrived = self._arrived, []
            self._has_arrived.clear()
            step, has_more = await loop.run_in_executor(self._thread, self._turn, arrived)
            self._answer(step)

    def _turn(self, arrived: list[Request]) -> tuple[LaneStep, bool]:
        for request in arrived:
            self._lane.add(request)
        return self._lane.run_one(), self._lane.has_work
