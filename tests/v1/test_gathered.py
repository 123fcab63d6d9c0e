"""Whole answers, with answers that a test makes: what is gathered, and that nobody goes on making what nobody reads."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import pytest

from chatsite.chat import reply as replies
from chatsite.chat.events import Accepted, Ended
from chatsite.chat.live import LiveAnswer
from chatsite.chat.models import Origin, State
from chatsite.chat.turn import Caller, Turn
from chatsite.errors import ReplyRefused
from chatsite.v1.answers import gathered
from inference.types import Segment


class Making:
    """What becomes of the answers: `whole`, `refused` or `endless`; and which were cancelled."""

    def __init__(self, *kinds: str) -> None:
        self.turns = [Turn(Caller(1, "t"), uuid4(), (Segment("user", "hi"),)) for _ in kinds]
        self._kinds = {turn.generation: kind for turn, kind in zip(self.turns, kinds, strict=True)}
        self.cancelled: list[str] = []

    async def answer(self, turn: Turn, live: LiveAnswer) -> None:
        kind = self._kinds[turn.generation]
        try:
            if kind == "refused":
                live.fail(ReplyRefused("queue_full", "full", 503))
                return
            live.say(Accepted(turn.generation, cache_outcome="miss"))
            for number in range(1, 10):
                live.add_text(number, f"{number}", 1)
                await asyncio.sleep(0)
            if kind == "endless":
                await asyncio.Event().wait()
            live.say(Ended(turn.generation, State.COMPLETE, "stop", Origin.MODEL))
        except asyncio.CancelledError:
            self.cancelled.append(kind)
            raise


def making(monkeypatch: pytest.MonkeyPatch, *kinds: str) -> Making:
    made = Making(*kinds)
    monkeypatch.setattr(replies, "answer", made.answer)
    return made


async def test_whole_answers_are_gathered_by_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    answers, accepted = await gathered(making(monkeypatch, "whole", "whole").turns)
    assert [(answer.text, answer.num_streamed) for answer in answers] == [("123456789", 9)] * 2
    assert accepted is not None and accepted.cache_outcome == "miss"


async def test_the_refusal_of_one_ends_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    made = making(monkeypatch, "endless", "refused")
    with pytest.raises(ReplyRefused):
        await gathered(made.turns)
    assert made.cancelled == ["endless"]


@pytest.mark.parametrize("num", [1, 3])
async def test_who_goes_away_ends_all(num: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made = making(monkeypatch, *["endless"] * num)
    asking = asyncio.create_task(gathered(made.turns))
    while not all(replies.running().get(turn.generation) for turn in made.turns):
        await asyncio.sleep(0)
    for _ in range(20):
        await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert made.cancelled == ["endless"] * num
    assert not len(replies.running())
