"""One broken request fails alone; its neighbours stay exact."""

from __future__ import annotations

import pytest
import torch

from inference.config import EngineConfig
from inference.core.kv_cache import BlockActions, KvCache
from inference.core.messages import SamplingSpec
from inference.core.prefix import PrefixCache, Salts
from inference.core.sequence import Sequence
from inference.core.startup import assemble
from inference.models.attention import AttentionNotUsable
from tests.inference.core.driver import Driver, admit
from tests.inference.core.fakes import BLOCK_TOKENS, expected, make_fake_core


@pytest.mark.parametrize("fault", ["failing", "broken"])
def test_a_poison_request_fails_alone(fault: str) -> None:
    core = make_fake_core()
    poison = admit([9, 8, 7, 6, 5, 4], max_tokens=8, conversation=b"poison")
    neighbours = [admit([n, n + 1, n + 2], max_tokens=8) for n in range(3)]
    getattr(core.runner, fault).add(poison.id)
    core.driver.run(*neighbours, poison)
    assert core.driver.end(poison).reason == "failed"
    assert core.driver.end(poison).error
    for neighbour in neighbours:
        assert core.driver.ids(neighbour) == expected(neighbour.prompt_ids, 8)
    assert core.driver.loop.stats().blocks_used == 0
    again = admit(poison.prompt_ids, max_tokens=8, conversation=b"poison")
    core.driver.run(again)
    assert core.driver.ids(again) == expected(again.prompt_ids, 8)
    assert core.driver.end(again).reused_head_tokens + core.driver.end(again).reused_prefix_tokens == 0


def test_broken_numbers_in_the_middle_of_a_prompt_fail_at_once_and_are_never_found() -> None:
    """Three chunks are read; the second breaks. What looks only at the end of a prompt publishes its blocks first."""
    core = make_fake_core(step_tokens=16)
    poison = admit([*range(1, 41)], max_tokens=4, conversation=b"poison")
    core.runner.broken_from[poison.id] = 20
    core.driver.step(poison)
    core.driver.step()
    assert core.driver.end(poison).reason == "failed"
    assert core.driver.end(poison).error
    assert core.driver.loop.stats().blocks_used == 0
    again = admit(poison.prompt_ids, max_tokens=4, conversation=b"poison")
    core.driver.run(again)
    assert core.driver.ids(again) == expected(again.prompt_ids, 4)
    assert core.driver.end(again).reused_head_tokens + core.driver.end(again).reused_prefix_tokens == 0


def test_a_token_that_breaks_the_real_model_in_mid_prompt_leaves_neighbours_exact(
    make_driver, load_tiny, random_prompt
) -> None:
    """Its keys and values are NaN and lie in the same pool, in the same forward."""
    family, poisonous = "gemma3_text", 301  # a family whose output does not share the table of embeddings
    neighbours = [admit(random_prompt(length), max_tokens=12) for length in (4, 25)]
    alone = [make_driver(family).generate(admit(n.prompt_ids, max_tokens=12)) for n in neighbours]
    poison = admit([*random_prompt(40), poisonous, *random_prompt(60)], max_tokens=4)
    driver = make_driver(family, step_tokens=32)
    table = load_tiny(family).model.get_input_embeddings().weight.data
    kept = table[poisonous].clone()
    table[poisonous] = float("nan")
    try:
        driver.step(*neighbours, poison)
        steps = 1
        while poison.id not in driver.finished:
            driver.step()
            steps += 1
        assert steps <= 3
        driver.run()
    finally:
        table[poisonous] = kept
    assert driver.end(poison).reason == "failed"
    assert [driver.ids(neighbour) for neighbour in neighbours] == alone
    again = admit(poison.prompt_ids, max_tokens=4)
    answer = driver.generate(again)
    assert answer == make_driver(family).generate(admit(poison.prompt_ids, max_tokens=4))
    assert driver.end(again).reused_prefix_tokens == 0


def test_numbers_of_a_poisoned_sequence_never_reach_the_next_owner_of_its_blocks(
    make_driver, random_prompt
) -> None:
    """0 x NaN is NaN: what a broken sequence wrote must be gone before somebody else masks it out."""
    prompt = random_prompt(20)
    healthy = make_driver(num_blocks=5).generate(admit(prompt))
    driver = make_driver(num_blocks=5)
    driver.generate(admit(random_prompt(17)))  # stays cached, so that the slab's memory is not given back
    runner = driver.loop._forward.runner
    run = runner.run
    held: set[int] = set()

    def run_and_break(chunks):
        logits = run(chunks)
        held.update(block for chunk in chunks for block in chunk.sequence.blocks)
        for block in held:
            runner.tensors.block(block).fill_(float("nan"))
        logits.fill_(float("nan"))
        return logits

    runner.run = run_and_break
    for length in (30, 30):
        poison = admit(random_prompt(length))
        driver.run(poison)
        assert driver.end(poison).reason == "failed"
    runner.run = run
    assert driver.generate(admit(prompt)) == healthy


def test_what_a_sequence_computed_again_after_a_preemption_is_wiped_when_it_fails() -> None:
    """It reused these blocks the first time, but it wrote them the second time: its numbers can't be trusted."""
    wiped: list[int] = []
    kv = KvCache(8, PrefixCache(b"fake", BLOCK_TOKENS), BlockActions(lambda *_: None, wiped.append))
    prompt = list(range(2 * BLOCK_TOKENS + 1))
    healthy, poison = (Sequence(admit(prompt), arrival, 0.0) for arrival in (1, 2))
    for sequence in (healthy, poison):
        assert kv.acquire(sequence, 0.0)
        if sequence is healthy:
            sequence.advance(len(prompt))
            kv.publish(sequence)
            kv.finish(sequence, 0.0)
    assert poison.num_computed == 2 * BLOCK_TOKENS
    kv.preempt(poison, 0.0)
    kv.clear()
    assert kv.acquire(poison, 0.0)
    assert poison.num_computed == 0
    poison.advance(len(prompt))
    kv.publish(poison)
    wrote = set(poison.blocks)
    kv.discard(poison, 0.0)
    assert wrote == set(wiped)
    assert kv.prefix.match(Salts(b"salt"), prompt, [], len(prompt)) == []


@pytest.mark.parametrize(
    "spec",
    [
        SamplingSpec(temperature=float("nan")),
        SamplingSpec(temperature=-1.0),
        SamplingSpec(top_p=0.0),
        SamplingSpec(top_k=-1),
        SamplingSpec(repetition_penalty=0.0),
        SamplingSpec(presence_penalty=float("inf")),
    ],
)
def test_an_impossible_sampling_value_fails_alone(spec: SamplingSpec) -> None:
    core = make_fake_core()
    bad, good = admit([1, 2], sampling=spec), admit([3, 4], max_tokens=5)
    core.driver.run(bad, good)
    assert core.driver.end(bad).error.startswith("invalid_request")
    assert core.driver.ids(good) == expected([3, 4], 5)


@pytest.mark.parametrize("family", ["llama-unfused", "gemma2", "gemma3_text"])
def test_the_model_raises_when_it_is_called_without_our_metadata(load_tiny, family: str) -> None:
    with pytest.raises(AttentionNotUsable, match="metadata"):
        load_tiny(family).model(torch.tensor([[5, 6, 7]]))


def test_a_model_that_looks_ahead_is_refused_by_the_attention(load_tiny) -> None:
    """Such checkpoints exist (sentence encoders of a causal family): kept keys would be wrong for them."""
    model = load_tiny("gemma2").model
    attention = model.model.layers[0].self_attn
    attention.is_causal = False
    try:
        driver = Driver(assemble(EngineConfig(kv_memory_mb=4), load_tiny("gemma2")).loop)
        request = admit([5, 6, 7])
        driver.run(request)
        assert "what comes later" in driver.end(request).error
    finally:
        attention.is_causal = True


def test_a_leak_is_logged_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    core = make_fake_core()
    core.kv.pool.take()
    assert not core.driver.loop.check_blocks()
    assert core.driver.loop.stats().leak_alarms == 1
    assert "do not add up" in caplog.text
