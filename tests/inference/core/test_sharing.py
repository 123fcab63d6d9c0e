"""Users share the KV of exactly what the operator declared, and their answers stay what they were."""

from __future__ import annotations

import random

import pytest

from inference.core.messages import Admit, DeclaredPrefix, Forget, SharePrefixes
from inference.core.prefix import Salts
from tests.inference.core.driver import Driver, admit
from tests.inference.core.fakes import FakeCore, expected, make_fake_core

# Two whole blocks of four tokens, and half a one.
SYSTEM = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
DECLARE = SharePrefixes([DeclaredPrefix("support", SYSTEM)])
QUESTION = [*SYSTEM, 20, 21, 22, 23, 24, 25]


def ask(driver: Driver, prompt: list[int], user: bytes, **fields: object) -> Admit:
    request = admit(prompt, max_tokens=3, salt=user, **fields)
    assert driver.generate(request) == expected(prompt, 3)
    return request


def declared(*, overlap: float = 0.0, num_blocks: int = 64) -> FakeCore:
    core = make_fake_core(num_blocks, shared_overlap=overlap)
    core.driver.run(DECLARE)
    return core


def shared_tokens(core: FakeCore, request: Admit) -> int:
    return core.driver.end(request).reused_shared_tokens


def test_with_threshold_zero_it_is_computed_before_anybody_asks() -> None:
    core = declared()
    stats = core.driver.loop.stats()
    assert stats.blocks_shared == 2
    first = ask(core.driver, QUESTION, b"a")
    assert shared_tokens(core, first) == 8
    assert core.driver.end(first).prefilled_tokens == len(QUESTION) - 8
    assert core.driver.loop.stats().reused_shared_tokens == 8


def test_two_users_share_the_declared_blocks_and_nothing_behind_them() -> None:
    core = declared()
    ask(core.driver, QUESTION, b"a")
    other = ask(core.driver, QUESTION, b"b")
    assert shared_tokens(core, other) == 8
    assert core.driver.end(other).reused_prefix_tokens == 0, "the third block holds what user a has asked"
    again = ask(core.driver, QUESTION, b"a")
    assert shared_tokens(core, again) == 8
    assert core.driver.end(again).reused_prefix_tokens == 4, "what is his own is found below the shared"


def test_equal_beginnings_that_nobody_declared_are_never_shared() -> None:
    """A mutant that shares whatever is common fails here."""
    core = declared()
    prompt = [30, *QUESTION]
    for user in (b"a", b"b", b"c"):
        request = ask(core.driver, prompt, user)
        end = core.driver.end(request)
        assert end.reused_shared_tokens + end.reused_prefix_tokens == 0
    nearly = [*SYSTEM[:-1], 49, 20, 21]  # differs in the last declared token, behind the last whole block
    assert shared_tokens(core, ask(core.driver, nearly, b"a")) == 0


def test_it_switches_on_by_overlap_and_off_again() -> None:
    core = declared(overlap=0.5)
    assert core.driver.loop.stats().blocks_shared == 0
    ask(core.driver, QUESTION, b"a")
    assert not core.driver.loop.stats().shared_prefixes[0].is_shared
    ask(core.driver, QUESTION, b"b")
    assert core.driver.loop.stats().shared_prefixes[0].is_shared
    third = ask(core.driver, QUESTION, b"c")
    assert shared_tokens(core, third) == 8
    for number in range(10):
        ask(core.driver, [40, number, 1, 2], b"a")
    stats = core.driver.loop.stats()
    assert not stats.shared_prefixes[0].is_shared
    assert stats.blocks_shared == 0
    assert shared_tokens(core, ask(core.driver, QUESTION, b"d")) == 0


def test_what_a_user_has_already_is_not_computed_again_when_sharing_begins() -> None:
    core = declared(overlap=0.5)
    long = [*QUESTION, *range(26, 40)]
    ask(core.driver, long, b"a")
    ask(core.driver, QUESTION, b"b")
    assert core.driver.loop.stats().shared_prefixes[0].is_shared
    again = ask(core.driver, [*long, 41], b"a")
    assert core.driver.end(again).reused_prefix_tokens == 28
    assert core.driver.end(again).prefilled_tokens == len(long) + 1 - 28


def test_a_chain_that_began_as_a_users_own_never_becomes_the_operators() -> None:
    core = declared(overlap=0.5)
    ask(core.driver, QUESTION, b"a")
    ask(core.driver, QUESTION, b"b")
    prefix = core.kv.prefix
    first, second = prefix.match(Salts(b"a"), QUESTION, [], 8)
    core.kv.kept.drop(second)
    for block in [b for b in core.kv.pool.cached_blocks() if core.kv.kept.is_shared(b)]:
        if core.kv.pool.is_cached(block):  # the loss of its parent took it along otherwise
            core.kv.kept.drop(block)
    request = ask(core.driver, QUESTION, b"a")
    assert core.driver.end(request).reused_prefix_tokens == 4
    assert core.driver.loop.stats().blocks_shared == 0
    assert prefix.match(Salts(b"a"), QUESTION, [first], 8)


def test_under_load_the_first_prompt_computes_it_for_all() -> None:
    """The prefill ahead waits for an idle engine; users must not wait for that."""
    core = make_fake_core(shared_overlap=0.0)
    first = admit(QUESTION, max_tokens=20, salt=b"a")
    core.driver.step(DECLARE, first)
    core.driver.step()
    second = admit(QUESTION, max_tokens=3, salt=b"b")
    core.driver.run(second)
    assert shared_tokens(core, second) == 8
    assert core.driver.ids(first) == expected(QUESTION, 20)


def test_everything_else_goes_before_it_does() -> None:
    core = declared(num_blocks=16)
    for number in range(12):
        ask(core.driver, [number + 30, *range(1, 45)], b"a", conversation=bytes([number]))
    stats = core.driver.loop.stats()
    assert stats.evicted_blocks > 0
    assert stats.blocks_shared == 2
    assert shared_tokens(core, ask(core.driver, QUESTION, b"b")) == 8


def test_it_never_keeps_a_request_from_its_memory() -> None:
    core = declared(num_blocks=8)
    ask(core.driver, [*range(11, 40)], b"a")  # all eight blocks
    assert shared_tokens(core, ask(core.driver, QUESTION, b"a")) == 0
    assert shared_tokens(core, ask(core.driver, QUESTION, b"b")) == 8


def test_forgetting_a_conversation_leaves_the_operators_blocks() -> None:
    core = declared(overlap=0.5)
    ask(core.driver, QUESTION, b"a", conversation=b"talk a")
    ask(core.driver, QUESTION, b"b", conversation=b"talk b")
    ask(core.driver, QUESTION, b"b", conversation=b"talk b")
    core.driver.run(Forget(b"talk a"), Forget(b"talk b"))
    stats = core.driver.loop.stats()
    assert (stats.blocks_cached, stats.blocks_shared) == (2, 2)


def test_what_is_no_longer_declared_is_no_longer_shared() -> None:
    core = declared()
    ask(core.driver, QUESTION, b"a")
    core.driver.run(SharePrefixes([]))
    assert core.driver.loop.stats().blocks_shared == 0
    assert shared_tokens(core, ask(core.driver, QUESTION, b"b")) == 0


def test_probes_and_prefills_ahead_do_not_count() -> None:
    core = declared(overlap=0.5)
    for user in (b"a", b"b"):
        ask(core.driver, QUESTION, user, is_background=True)
    assert core.driver.loop.stats().shared_prefixes[0].overlap == 0.0


def test_a_prefix_longer_than_the_window_harms_nobody() -> None:
    core = make_fake_core(8, shared_overlap=0.0)
    core.driver.run(SharePrefixes([DeclaredPrefix("long", [1] * 100)]))
    ask(core.driver, QUESTION, b"a")


@pytest.mark.parametrize("seed", range(5))
def test_random_traffic_with_sharing_on_and_off_stays_exact(seed: int) -> None:
    source = random.Random(seed)
    core = declared(overlap=0.4, num_blocks=20)
    for _ in range(80):
        begins = SYSTEM if source.random() < 0.5 else SYSTEM[: source.randrange(len(SYSTEM))]
        prompt = [*begins, *(source.randrange(50) for _ in range(source.randrange(1, 20)))]
        user = source.choice([b"a", b"b", b"c"])
        talk = source.choice([b"", user + b"1", user + b"2"])
        ask(core.driver, prompt, user, conversation=talk)
        if source.random() < 0.1:
            core.driver.run(Forget(user + b"1"))


@pytest.mark.parametrize("family", ["llama", "gemma3_text"])
def test_the_real_forward_answers_as_without_sharing(make_driver, random_prompt, family: str) -> None:
    system = random_prompt(40)
    prompts = [[*system, *random_prompt(length)] for length in (3, 9, 30)]
    cold = [make_driver(family).generate(admit(prompt)) for prompt in prompts]
    driver = make_driver(family, shared_overlap=0.0)
    driver.run(SharePrefixes([DeclaredPrefix("system", system)]))
    requests = [admit(prompt, salt=bytes([number])) for number, prompt in enumerate(prompts)]
    assert [driver.generate(request) for request in requests] == cold
    assert [driver.end(request).reused_shared_tokens for request in requests] == [32, 32, 32]
