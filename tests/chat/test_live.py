"""The live text: any number of followers, each at its own pace, all with the same text."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import pytest

from chatsite.chat.events import Ended, Piece
from chatsite.chat.live import HandedOver, LiveAnswer
from chatsite.chat.models import Origin, State
from chatsite.chat.pace import AT_ONCE
from chatsite.chat.tail import events_of
from inference.types import TokenLogprob


def ended(live: LiveAnswer) -> Ended:
    return Ended(live.generation, State.COMPLETE, "stop", Origin.MODEL)


async def text_of(live: LiveAnswer, num_seen: int = 0) -> str:
    events = events_of(live, AT_ONCE, num_seen)
    return "".join([event.text async for event in events if isinstance(event, Piece)])


async def test_followers_that_come_at_any_time_get_the_same_text() -> None:
    live = LiveAnswer(uuid4())
    tasks = []
    texts = []
    for number in range(20):
        snapshot = live.snapshot()
        texts.append(snapshot.text)
        tasks.append(asyncio.create_task(text_of(live, snapshot.num_pieces)))
        live.add_text(number + 1, f"{number},", 1)
        await asyncio.sleep(0)
    live.say(ended(live))
    tails = await asyncio.gather(*tasks)
    assert {text + tail for text, tail in zip(texts, tails, strict=True)} == {live.text}


async def test_a_slow_follower_gets_what_it_missed_in_one_piece() -> None:
    live = LiveAnswer(uuid4())
    live.add_text(1, "a", 1)
    events = events_of(live)
    assert (await anext(events)).text == "a"  # type: ignore[union-attr]
    for number in range(2, 1000):
        live.add_text(number, "b", 1, (TokenLogprob(number, b"b", -1.0),))
    piece = await anext(events)
    assert isinstance(piece, Piece)
    assert [one.token_id for one in piece.logprobs] == list(range(2, 1000))
    assert (piece.text, piece.seq, piece.offset, piece.num_tokens) == ("b" * 998, 999, 1, 998)
    await events.aclose()


def test_the_whole_text_is_asked_for_at_any_time() -> None:
    live = LiveAnswer(uuid4(), "kept ", 4)
    assert live.text == "kept "
    for number, word in enumerate(("and ", "more ", "text"), 5):
        live.add_text(number, word, 1)
        assert live.text == "kept and more text"[: live.length]
        assert live.text is live.text


async def test_a_failure_reaches_followers_after_the_text() -> None:
    live = LiveAnswer(uuid4(), "kept", 4)
    live.fail(HandedOver())
    events = events_of(live)
    assert (await anext(events)).text == "kept"  # type: ignore[union-attr]
    with pytest.raises(HandedOver):
        await anext(events)
