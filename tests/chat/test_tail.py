"""Reading several answers with patience: turns, silence, breaking off, and leaving."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import pytest

from chatsite.chat.events import Ended, Piece
from chatsite.chat.live import HandedOver, LiveAnswer
from chatsite.chat.models import Origin, State
from chatsite.chat.pace import AT_ONCE, Pace
from chatsite.chat.tail import Tail
from tests.chat.virtual import run_virtually


def tail_of(*lives: LiveAnswer, pace: Pace = AT_ONCE) -> Tail:
    tail = Tail(pace)
    for live in lives:
        tail.add(live)
    return tail


async def texts_of(tail: Tail, num: int) -> list[tuple[int, str]]:
    found = [await tail.next() for _ in range(num)]
    return [(one[0], getattr(one[1], "text", "")) for one in found if one is not None]


async def test_answers_take_turns_and_each_keeps_its_order() -> None:
    lives = [LiveAnswer(uuid4()) for _ in range(2)]
    tail = tail_of(*lives)
    lives[1].add_text(1, "b", 1)
    lives[0].add_text(1, "a", 1)
    assert sorted(await texts_of(tail, 2)) == [(0, "a"), (1, "b")]
    for live in lives:
        live.add_text(2, "c", 1)
        live.say(Ended(live.generation, State.COMPLETE, "stop", Origin.MODEL))
    found = await texts_of(tail, 4)
    assert [number for number, _ in found] in ([0, 1, 0, 1], [1, 0, 1, 0])
    assert [text for _, text in found] == ["c", "c", "", ""]
    await tail.close()
    assert not any(live._followers for live in lives)


def test_who_is_patient_is_told_of_silence_and_misses_nothing() -> None:
    async def run() -> None:
        live, loop = LiveAnswer(uuid4()), asyncio.get_running_loop()
        tail = tail_of(live, pace=Pace(4, 0.05))
        assert await tail.next(10.0) is None
        assert loop.time() == pytest.approx(10.0)
        loop.call_later(5.0, live.add_text, 1, "a", 1)
        coming = await tail.next(10.0)
        assert coming is not None and isinstance(coming[1], Piece)
        assert loop.time() == pytest.approx(15.0)
        live.add_text(2, "b", 1)
        assert await tail.next(0.01) is None  # it waits for company
        assert await tail.next(0.1) is not None
        assert await tail.next(0) is None
        await tail.close()

    run_virtually(run())


async def test_breaking_off_comes_before_what_has_come_already() -> None:
    live = LiveAnswer(uuid4())
    tail = tail_of(live)
    waiting = asyncio.create_task(tail.next())
    await asyncio.sleep(0)
    tail.break_off(HandedOver())
    with pytest.raises(HandedOver):
        await waiting
    live.add_text(1, "a", 1)
    with pytest.raises(HandedOver):
        await tail.next()
    await tail.close()


async def test_the_failure_of_one_answer_is_raised_behind_its_text() -> None:
    whole, broken = LiveAnswer(uuid4()), LiveAnswer(uuid4())
    tail = tail_of(whole, broken)
    broken.add_text(1, "a", 1)
    broken.fail(HandedOver())
    assert await texts_of(tail, 1) == [(1, "a")]
    with pytest.raises(HandedOver):
        await tail.next()
    await tail.close()


async def test_closing_ends_what_was_read_and_passes_its_own_cancellation_on() -> None:
    is_ending, may_end = asyncio.Event(), asyncio.Event()

    async def slow_to_end() -> None:
        is_ending.set()
        await may_end.wait()

    live = LiveAnswer(uuid4())
    tail = Tail(AT_ONCE, on_close=slow_to_end)
    tail.add(live)
    closing = asyncio.create_task(tail.close())
    await is_ending.wait()
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert not live._followers
    may_end.set()
    await tail.close()
