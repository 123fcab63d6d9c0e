"""The embedding lane in the front: nothing waits for a core that is gone, and the bound counts what the core holds."""

from __future__ import annotations

import asyncio

import pytest

from inference.core.messages import Command, Embedded, EmbedTexts, StepPack
from inference.errors import EngineUnavailable, ModelLoading, QueueFull
from inference.front.lane import MAX_WAITING_TEXTS, Lane


class FakeCore:
    def __init__(self) -> None:
        self.is_ready = True
        self.sent: list[Command] = []

    def send(self, command: Command) -> None:
        self.sent.append(command)


def make_lane() -> tuple[Lane, FakeCore]:
    core = FakeCore()
    return Lane(core), core  # type: ignore[arg-type]


async def test_texts_that_come_between_two_cores_are_refused_at_once() -> None:
    lane, core = make_lane()
    core.is_ready = False
    with pytest.raises(ModelLoading):
        await lane.embed([[1]])
    assert core.sent == []
    assert not lane.has_pending


async def test_texts_that_nobody_waits_for_count_until_the_core_is_done_with_them() -> None:
    lane, core = make_lane()
    given_up = asyncio.create_task(lane.embed([[1]] * MAX_WAITING_TEXTS))
    await asyncio.sleep(0)
    given_up.cancel()
    await asyncio.gather(given_up, return_exceptions=True)
    assert lane.has_pending
    with pytest.raises(QueueFull):
        await lane.embed([[1]])
    (request,) = core.sent
    assert isinstance(request, EmbedTexts)
    lane.on_step(StepPack(embedded=[Embedded(request.id, 1, b"")]))
    assert not lane.has_pending


async def test_a_lost_core_leaves_nothing_pending() -> None:
    lane, _ = make_lane()
    waiting = asyncio.create_task(lane.embed([[1]]))
    await asyncio.sleep(0)
    lane.fail_all("gone")
    with pytest.raises(EngineUnavailable):
        await waiting
    assert not lane.has_pending
