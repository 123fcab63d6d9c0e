"""What a request may ask of its output: log-probabilities, a least length, ends of its own, an end to circles."""

from __future__ import annotations

from dataclasses import replace

import pytest

from inference.client import EngineClient
from inference.errors import InvalidRequest
from inference.testing import script_text, scripted_engine
from inference.types import Delta, Event, FinishReason, Sampling, TokenLogprob
from tests.inference.contract.conftest import Target, ask
from tests.inference.contract.test_contract import collect, ending, text_of


@pytest.fixture(params=["scripted", "real"])
def target(request: pytest.FixtureRequest) -> Target:
    found: Target = request.getfixturevalue(request.param)
    return found


def ids_of(events: list[Event]) -> list[int]:
    return [token for event in events if isinstance(event, Delta) for token in event.token_ids]


def logprobs_of(events: list[Event]) -> list[TokenLogprob]:
    return [entry for event in events if isinstance(event, Delta) for entry in event.logprobs]


async def test_logprobs_come_with_their_tokens_and_spell_the_answer(
    target: Target, client: EngineClient
) -> None:
    events = await collect(client.generate(target.request(30, logprobs=2)))
    entries = logprobs_of(events)
    assert [entry.token_id for entry in entries] == ids_of(events)
    assert b"".join(entry.token for entry in entries).decode("utf-8", "replace") == text_of(events)
    for entry in entries:
        assert entry.logprob <= 0
        assert entry.logprob == entry.top[0].logprob  # greedy; two may be equally likely
        assert entry.token_id in [top.token_id for top in entry.top]
        assert list(entry.top) == sorted(entry.top, key=lambda top: -top.logprob)
    plain = await collect(client.generate(target.request(5)))
    assert logprobs_of(plain) == []


async def test_nothing_ends_an_answer_before_min_tokens(target: Target, client: EngineClient) -> None:
    free = await collect(client.generate(target.request(12)))
    first_characters = tuple(dict.fromkeys(text_of(free)))[:16]
    stopped = await collect(client.generate(target.request(12, stop=first_characters, min_tokens=0)))
    assert text_of(stopped) == ""
    held = await collect(client.generate(target.request(12, stop=first_characters, min_tokens=12)))
    assert ending(held).usage.generated_tokens == 12


@pytest.mark.parametrize("target", ["real"], indirect=True)
async def test_a_request_may_name_ids_that_end_its_answer(target: Target, client: EngineClient) -> None:
    request = target.request(12, min_tokens=0)
    free = await collect(client.generate(request))
    ids = ids_of(free)
    place = next(number for number, token in enumerate(ids) if number > 2 and token not in ids[:number])
    chosen = replace(request.sampling, stop_ids=(ids[place],))
    events = await collect(client.generate(ask("Tell me a story", chosen)))
    assert ids_of(events) == ids[:place]
    assert ending(events).finish_reason is FinishReason.STOP


async def test_ids_that_the_model_does_not_have_are_refused(client: EngineClient) -> None:
    for sampling in (Sampling(stop_ids=(2**31,)), Sampling(logit_bias=((2**31, 1.0),))):
        with pytest.raises(InvalidRequest):
            await client.submit(ask("Hello", sampling))


async def test_an_answer_that_goes_round_in_circles_is_ended_and_counted() -> None:
    async with scripted_engine("--repetition-tokens", "64") as engine:
        client = engine.client()
        looping = ask(script_text(text="I am sorry. ", tokens=2000, delay_ms=0.1))
        events = await collect(client.generate(looping))
        assert ending(events).finish_reason is FinishReason.REPETITION
        assert 64 <= ending(events).usage.generated_tokens < 64 + 2 * 16
        assert text_of(events).startswith("I am sorry. I am sorry. ")
        stats = await client.stats()
        assert (stats.repetitions, stats.cancelled) == (1, 0)
        listing = ask(script_text(text="".join(f"{n}. Buy milk\n" for n in range(60)), delay_ms=0.1))
        assert ending(await collect(client.generate(listing))).finish_reason is FinishReason.STOP
        await client.close()
