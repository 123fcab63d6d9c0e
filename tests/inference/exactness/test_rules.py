"""The nine rules hold on every family, and each check met what it is about."""

from __future__ import annotations

import pytest

from tests.inference.exactness import core_rules, front_rules

# Grouped KV heads and tied embeddings; attention biases; norms of heads; softcaps with alternating windows; windows.
UNFUSED = ["llama-unfused", "qwen3-unfused", "gemma2", "gemma3_text"]
FAMILIES = ["llama", "llama-plain", "qwen2", "qwen3", "qwen3-plain", *UNFUSED]


@pytest.mark.parametrize("family", FAMILIES)
def test_answers_and_logits_do_not_depend_on_reuse_or_company(make_driver, family) -> None:
    evidence = core_rules.answers_do_not_depend_on_company(make_driver, family)
    assert evidence.num_answers == 27
    assert evidence.num_rows > 150
    assert evidence.reused_head > 500
    assert evidence.reused_prefix > 100
    assert evidence.num_forks > 0
    assert evidence.evictions > 0
    assert evidence.preemptions > 0
    assert evidence.largest_batch > 3
    assert evidence.num_near_ties <= 1


def test_no_block_is_lost_in_two_thousand_mixed_requests() -> None:
    evidence = core_rules.blocks_add_up()
    assert evidence.num_answers > 1000
    assert evidence.reused_head > evidence.reused_prefix > 1000
    assert evidence.evictions > 0
    assert evidence.preemptions > 0
    assert evidence.forgotten > 0
    assert evidence.classes == {"closed", "superseded", "idle", "active"}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_later_turn_prefills_only_what_is_new(make_driver, family) -> None:
    evidence = core_rules.a_turn_costs_what_is_new(make_driver, family)
    assert evidence.reused_head > 150


@pytest.mark.parametrize("family", FAMILIES)
def test_owners_share_nothing(make_driver, family) -> None:
    evidence = core_rules.owners_share_nothing(make_driver, family)
    assert evidence.reused_prefix > 0
    assert evidence.reused_head > 0


@pytest.mark.parametrize("family", UNFUSED)
def test_attention_refuses_a_call_without_its_metadata(load_tiny, family) -> None:
    core_rules.attention_refuses_a_plain_call(load_tiny(family))


def test_streams_join_to_the_whole_text(served) -> None:
    assert front_rules.streams_join_to_the_whole(served).num_rows > 30


def test_typed_text_never_becomes_control_tokens(served) -> None:
    assert front_rules.typed_text_never_becomes_control_tokens(served).num_answers == 21


@pytest.mark.parametrize("family", FAMILIES)
def test_poison_fails_alone(make_driver, family) -> None:
    assert core_rules.poison_fails_alone(make_driver, family).num_answers == 3


@pytest.mark.parametrize("family", FAMILIES)
def test_randomness_depends_on_seed_and_position_only(make_driver, family) -> None:
    evidence = core_rules.randomness_depends_on_seed_and_position_only(make_driver, family)
    assert evidence.num_answers == 2
    assert evidence.reused_prefix > 0
