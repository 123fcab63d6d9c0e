"""Several answers to one prompt: ids, seeds, and streams that become one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from inference.choices import MAX_CHOICES, choice_of, choices_of, merged
from inference.errors import EngineUnavailable, InvalidRequest
from inference.types import Delta, Event, GenerateRequest, Owner, Sampling, Segment

ID = "5e1a9e0a-3c0e-4b0e-8a53-0f6f6a1c2b11"


def request(seed: int | None = 7, generation_id: str = ID) -> GenerateRequest:
    return GenerateRequest(generation_id, (Segment("user", "Hi"),), Owner("t", "u"), Sampling(seed=seed))


def test_choice_0_is_the_request_itself() -> None:
    assert choice_of(request(), 0) == request()


def test_a_choice_depends_on_id_seed_and_number_only() -> None:
    three, five = choices_of(request(), 3), choices_of(request(), 5)
    assert five[:3] == three
    assert len({each.generation_id for each in five}) == len({each.sampling.seed for each in five}) == 5
    other_id = choice_of(request(generation_id="8b9f2c4e-0000-4000-8000-000000000000"), 2)
    assert other_id.generation_id != five[2].generation_id
    assert other_id.sampling.seed == five[2].sampling.seed == 3167967750878333780
    assert choice_of(request(seed=8), 2).sampling.seed != five[2].sampling.seed


def test_without_a_seed_every_choice_gets_one_from_the_engine() -> None:
    assert {each.sampling.seed for each in choices_of(request(seed=None), 4)} == {None}


@pytest.mark.parametrize("num_choices", [0, -1, MAX_CHOICES + 1, "2", 1.5, None])
def test_an_impossible_number_is_refused(num_choices: Any) -> None:
    with pytest.raises(InvalidRequest):
        choices_of(request(), num_choices)


class Source:
    """A stream of numbered events that a test lets go on, and that remembers that it was closed."""

    def __init__(self) -> None:
        self.gates = asyncio.Queue[Exception | None]()
        self.num_given = 0
        self.is_closed = False

    async def stream(self) -> AsyncGenerator[Event, None]:
        try:
            while (error := await self.gates.get()) is None:
                self.num_given += 1
                yield Delta(self.num_given, "x")
            if not isinstance(error, StopAsyncIteration):
                raise error
        finally:
            self.is_closed = True


async def test_events_come_as_they_arrive_and_each_stream_keeps_its_order() -> None:
    first, second = Source(), Source()
    both = merged([first.stream(), second.stream()])
    for source, expected in ((second, 1), (first, 0), (second, 1)):
        source.gates.put_nowait(None)
        index, event = await anext(both)
        assert (index, event.seq) == (expected, source.num_given)
    for source in (first, second):
        source.gates.put_nowait(StopAsyncIteration())
    assert [item async for item in both] == []


async def test_a_slow_reader_takes_no_more_than_one_event_ahead() -> None:
    source = Source()
    for _ in range(100):
        source.gates.put_nowait(None)
    events = merged([source.stream()])
    await anext(events)
    await asyncio.sleep(0)
    assert source.num_given <= 2
    await events.aclose()


async def test_one_stream_alone_is_passed_on_without_tasks_and_closed() -> None:
    source = Source()
    source.gates.put_nowait(None)
    events = merged([source.stream()])
    num_tasks = len(asyncio.all_tasks())
    assert await anext(events) == (0, Delta(1, "x"))
    assert len(asyncio.all_tasks()) == num_tasks
    await events.aclose()
    assert source.is_closed


async def test_the_failure_of_one_stream_closes_all_and_is_raised() -> None:
    first, second = Source(), Source()
    both = merged([first.stream(), second.stream()])
    second.gates.put_nowait(EngineUnavailable("gone"))
    with pytest.raises(EngineUnavailable):
        await anext(both)
    assert first.is_closed
    assert second.is_closed


async def test_who_leaves_early_closes_all_streams() -> None:
    first, second = Source(), Source()
    both = merged([first.stream(), second.stream()])
    first.gates.put_nowait(None)
    await anext(both)
    await both.aclose()
    assert first.is_closed
    assert second.is_closed
