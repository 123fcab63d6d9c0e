"""Every request of a batch has its own sampling, through the door as in the core."""

from __future__ import annotations

import asyncio

import pytest

from inference.client import EngineClient
from inference.types import FinishReason, GenerateRequest, Sampling
from tests.inference.contract.conftest import Target, ask
from tests.inference.contract.test_contract import collect, ending, text_of

QUESTION = "Tell me a story"


@pytest.fixture
def target(real: Target) -> Target:
    """The one that computes: scripts answer the same whatever the sampling."""
    return real


async def answer(client: EngineClient, request: GenerateRequest) -> tuple[str, FinishReason, int]:
    events = await collect(client.generate(request))
    return text_of(events), ending(events).finish_reason, ending(events).usage.generated_tokens


@pytest.mark.parametrize("is_reversed", [False, True])
async def test_ba_03_nobody_gets_the_sampling_of_the_first_in_the_batch(
    client: EngineClient, is_reversed: bool
) -> None:
    """BA-03: A greedy and short, B hot and seeded, C greedy with a stop string, D the best of one."""
    hot = Sampling(temperature=1.5, seed=7, max_tokens=32)
    best = Sampling(temperature=1.0, top_k=1, max_tokens=32)
    greedy, _, _ = await answer(client, ask(QUESTION, Sampling(temperature=0.0, max_tokens=32)))
    alone = await answer(client, ask(QUESTION, hot))
    stop = greedy[len(greedy) // 2]
    a, b, c, d = (
        ask(QUESTION, Sampling(temperature=0.0, max_tokens=4)),
        ask(QUESTION, hot),
        ask(QUESTION, Sampling(temperature=0.0, max_tokens=32, stop=(stop,))),
        ask(QUESTION, best),
    )
    order = [d, c, b, a] if is_reversed else [a, b, c, d]
    answers = await asyncio.gather(*(answer(client, request) for request in order))
    of = dict(zip((request.generation_id for request in order), answers, strict=True))
    text, reason, num_tokens = of[a.generation_id]
    assert greedy.startswith(text) and (reason, num_tokens) == (FinishReason.LENGTH, 4)
    assert of[b.generation_id] == alone
    assert of[c.generation_id][:2] == (greedy[: greedy.index(stop)], FinishReason.STOP)
    assert of[d.generation_id][0] == greedy


async def test_a_bias_forces_and_bans_for_its_own_request_only(client: EngineClient) -> None:
    forced = Sampling(temperature=0.0, max_tokens=3, logit_bias=((40, 100.0),))
    free = Sampling(temperature=0.0, max_tokens=3)
    alone = await answer(client, ask(QUESTION, free))
    answers = await asyncio.gather(*(answer(client, ask(QUESTION, s)) for s in (forced, free)))
    assert len(set(answers[0][0])) == 1 and answers[0][2] == 3
    assert answers[1] == alone
