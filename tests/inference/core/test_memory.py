"""The memory of the pool follows the load: slab by slab up to the budget, and back when the slabs are empty."""

from __future__ import annotations

import random
import sys

import pytest

from inference.core.messages import Forget
from tests.inference.core.driver import admit
from tests.inference.models.test_kv_tensors import resident_bytes

MIB = 1024 * 1024
SLAB = MIB  # ENGINE_KV_SLAB_MB=1 below; a block of the tiny model has 8 KiB


@pytest.fixture
def slabbed(make_driver):
    return make_driver(kv_slab_mb=1)  # four slabs of 128 blocks


def test_memory_is_taken_by_the_slab_and_given_back_after_a_burst(slabbed) -> None:
    source = random.Random(2)
    tensors = slabbed.loop._forward.runner.tensors
    before = slabbed.loop.stats()
    assert (before.kv_budget_bytes, before.kv_committed_bytes) == (4 * MIB, 0)
    conversations = [b"%d" % number for number in range(20)]
    burst = [
        admit([source.randrange(3, 300) for _ in range(250)], max_tokens=4, conversation=key)
        for key in conversations
    ]
    slabbed.run(*burst)
    loaded = slabbed.loop.stats()
    assert loaded.blocks_cached >= 20 * 15
    assert loaded.kv_committed_bytes == 3 * SLAB
    assert 2 * SLAB < resident_bytes(tensors.keys[0]) <= 3 * SLAB
    slabbed.step(*(Forget(key) for key in conversations))
    after = slabbed.loop.stats()
    assert (after.blocks_cached, after.kv_committed_bytes, after.kv_budget_bytes) == (0, 0, 4 * MIB)
    if sys.platform == "linux":
        assert resident_bytes(tensors.keys[0]) == 0


def test_what_is_kept_stays_in_its_slab_and_is_still_exact(slabbed, make_driver, random_prompt) -> None:
    kept = admit(random_prompt(40), conversation=b"kept")
    slabbed.generate(kept)
    burst = [admit(random_prompt(250), max_tokens=1, conversation=b"%d" % number) for number in range(12)]
    slabbed.run(*burst)
    assert slabbed.loop.stats().kv_committed_bytes == 2 * SLAB
    slabbed.step(*(Forget(request.conversation) for request in burst))
    assert slabbed.loop.stats().kv_committed_bytes == SLAB
    again = admit([*kept.prompt_ids, 5], conversation=b"kept")
    assert slabbed.generate(again) == make_driver().generate(admit(again.prompt_ids))
    assert slabbed.end(again).reused_head_tokens == 40


def test_the_pool_grows_before_it_evicts_and_never_beyond_the_budget(slabbed, random_prompt) -> None:
    committed = 0
    for number in range(40):
        slabbed.generate(admit(random_prompt(250), max_tokens=1, conversation=b"%d" % number))
        stats = slabbed.loop.stats()
        assert stats.kv_committed_bytes >= committed
        committed = stats.kv_committed_bytes
        assert not stats.evicted_blocks or committed == stats.kv_budget_bytes
    assert stats.evicted_blocks > 0


def test_answers_do_not_depend_on_slabs(make_driver, random_prompt) -> None:
    """A batch over blocks of several slabs; mutant: rows counted as if there were one slab."""
    prompts = [random_prompt(length) for length in (1500, 700, 30)]
    drivers = make_driver(kv_slab_mb=1), make_driver(kv_slab_mb=64)
    answers = []
    for driver in drivers:
        requests = [admit(prompt, max_tokens=6) for prompt in prompts]
        driver.run(*requests)
        answers.append([driver.ids(request) for request in requests])
    assert answers[0] == answers[1]
    assert drivers[0].loop.stats().kv_committed_bytes == 2 * SLAB
