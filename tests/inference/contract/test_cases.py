"""Reported pains of other engines, by their ids in the list of cases, at the door of this one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from inference.client import EngineClient
from inference.testing import EngineProcess, script_text, scripted_engine, scripted_process
from inference.types import Delta, Done, Event, FinishReason, Sampling
from tests.inference.contract.conftest import Target, ask
from tests.inference.contract.test_contract import collect, ending, first_delta, text_of
from tests.patience import PATIENCE_S

WEATHER = "你好，我能帮助你查天气🌤️。"


@pytest.fixture
def target(scripted: Target) -> Target:
    return scripted


def weather_pieces() -> list[str]:
    """助 cut after its first byte, the sun cut 2 + 2, its variation selector in a piece of its own."""
    raw = WEATHER.encode()
    half, sun = raw.index("助".encode()) + 1, raw.index("🌤".encode())
    borders = [0, half, half + 2, sun, sun + 2, sun + 4, sun + 7, len(raw)]
    return [raw[start:end].hex() for start, end in pairwise(borders)]


async def answer(client: EngineClient, sampling: Sampling | None = None, **script: Any) -> list[Event]:
    return await collect(client.generate(ask(script_text(**script), sampling)))


@pytest.mark.parametrize("delay_ms", [0, 3])
async def test_st_01_characters_cut_by_tokens_arrive_whole_however_they_are_joined(
    client: EngineClient, delay_ms: float
) -> None:
    streamed = await answer(client, hex=weather_pieces(), delay_ms=delay_ms)
    assert text_of(streamed) == WEATHER
    assert all("\ufffd" not in event.text for event in streamed if isinstance(event, Delta))


async def test_st_01_blanks_between_words_are_kept(client: EngineClient) -> None:
    assert text_of(await answer(client, pieces=["My", " name", " is", " Lin"])) == "My name is Lin"


@pytest.mark.parametrize("max_tokens", range(1, 16))
async def test_st_01_a_limit_in_mid_character_is_length_and_at_most_one_replacement(
    client: EngineClient, max_tokens: int
) -> None:
    request = ask(script_text(hex=weather_pieces()), Sampling(max_tokens=max_tokens))
    events = await collect(client.generate(request))
    again = await collect(client.attach(request.generation_id))
    assert ending(events).finish_reason is FinishReason.LENGTH
    assert text_of(events) == text_of(again)
    whole = text_of(events).removesuffix("\ufffd")
    assert WEATHER.startswith(whole)
    assert "\ufffd" not in whole


@pytest.mark.parametrize("delay_ms", [0, 3])
@pytest.mark.parametrize(
    ("pieces", "stops", "expected"),
    [
        (["NOP", "QR", "ST", "UV", "WX"], ("QRSTUV",), "NOP"),
        (["NOP", "QR", "SX", "YZ"], ("QRSTUV",), "NOPQRSXYZ"),
        (["ok", "\nUser", ":", " hi"], ("\nUser:",), "ok"),
        (["xa", "bc", "de"], ("bc", "abcd"), "xa"),
    ],
)
async def test_st_02_stop_strings_over_several_tokens(
    client: EngineClient, pieces: list[str], stops: tuple[str, ...], expected: str, delay_ms: float
) -> None:
    request = ask(script_text(pieces=pieces, delay_ms=delay_ms), Sampling(stop=stops))
    events = await collect(client.generate(request))
    again = await collect(client.attach(request.generation_id))
    assert text_of(events) == text_of(again) == expected
    assert ending(events).finish_reason is FinishReason.STOP
    assert ending(events).usage == ending(again).usage


@pytest.mark.parametrize(
    ("script", "max_tokens", "reason"),
    [
        ({"text": "a natural end"}, None, FinishReason.STOP),
        ({"tokens": 50}, 3, FinishReason.LENGTH),
        ({"tokens": 50, "fail_after": 5}, None, FinishReason.FAILED),
        ({"tokens": 50, "die_after": 5}, None, FinishReason.FAILED),
    ],
    ids=["end of sequence", "max_tokens", "error", "killed"],
)
async def test_st_04_every_stream_ends_in_exactly_one_way_and_the_next_request_works(
    script: dict[str, Any], max_tokens: int | None, reason: FinishReason
) -> None:
    async with scripted_engine("--probe-interval-s", "0.1") as engine:
        client = engine.client()
        request = ask(script_text(delay_ms=2, **script), Sampling(max_tokens=max_tokens))
        async with asyncio.timeout(PATIENCE_S):
            events = await collect(client.generate(request))
        ends = [event for event in events if isinstance(event, Done)]
        assert [end.finish_reason for end in ends] == [reason]
        assert bool(ends[0].error_code) == (reason is FinishReason.FAILED)
        await engine.wait_until(is_ready=True)
        assert (await client.stats()).running == 0
        assert ending(await answer(client, text="next")).finish_reason is FinishReason.STOP
        await client.close()


@pytest.fixture(scope="module")
def one_seat(run_folder: Path) -> Iterator[EngineProcess]:
    engine = scripted_process(run_folder / "one-seat", "--max-batch", "1")
    asyncio.run(engine.start())
    yield engine
    asyncio.run(engine.stop())


async def test_st_07_a_stopped_answer_frees_its_seat_for_the_next_one_at_once(
    one_seat: EngineProcess,
) -> None:
    client = one_seat.client()
    before = await client.stats()
    long = ask(script_text(tokens=500, delay_ms=200), Sampling(max_tokens=500))
    events = client.generate(long)
    seen = [await first_delta(events) for _ in range(5)]
    assert await client.cancel(long.generation_id, "stop button") is True
    ping = ask("ping", Sampling(max_tokens=2))
    answer = client.generate(ping)
    assert (await first_delta(answer)).text
    await collect(answer)
    rest = await collect(events)
    assert ending(rest).finish_reason is FinishReason.CANCELLED
    assert ending(rest).usage.generated_tokens < 20
    assert await client.cancel(long.generation_id) is False
    assert await client.cancel(ping.generation_id) is False
    kept = await collect(client.attach(long.generation_id))
    assert text_of(kept).startswith("".join(delta.text for delta in seen))
    after = await client.stats()
    assert after.cancelled == before.cancelled + 1
    assert (after.running, after.waiting, after.blocks_used) == (0, 0, 0)
    await client.close()


@pytest.mark.parametrize("delay_ms", [0, 2])
async def test_st_08_tokens_are_counted_once_however_they_are_delivered(
    client: EngineClient, delay_ms: float
) -> None:
    request = ask(script_text(tokens=40, delay_ms=delay_ms))
    submitted = await client.submit(request)
    streamed = await collect(client.attach(request.generation_id))
    whole = await collect(client.attach(request.generation_id))
    for events in (streamed, whole):
        ends = [event for event in events if isinstance(event, Done)]
        assert len(ends) == 1
        usage = ends[0].usage
        assert (usage.generated_tokens, usage.prompt_tokens) == (40, submitted.prompt_tokens)
        assert usage.reused_tokens + usage.prefilled_tokens == usage.prompt_tokens
        assert sum(len(event.token_ids) for event in events if isinstance(event, Delta)) == 40
