"""The rules of the core hold where every sequence drafts in every step, against answers that were made without."""

from __future__ import annotations

import functools

import pytest

from tests.inference.core.well_read import drafts_from, texts_read
from tests.inference.exactness import core_rules

FAMILIES = ["llama", "llama-unfused", "gemma2"]


@pytest.fixture
def make_drafting(make_driver):
    """Cores that are set up like those in company draft; those that answer a request alone, for comparison, do not."""

    def make(family: str, **fields: object):
        return make_driver(family, speculate="always" if fields else "off", **fields)

    return make


@pytest.mark.parametrize("family", FAMILIES)
def test_answers_and_logits_do_not_depend_on_drafts(make_driver, make_drafting, family) -> None:
    with texts_read() as texts:
        core_rules.answers_do_not_depend_on_company(make_driver, family)
    with drafts_from(texts):
        evidence = core_rules.answers_do_not_depend_on_company(make_drafting, family)
    assert evidence.num_answers == 27
    assert evidence.num_rows > 150
    assert evidence.drafted > evidence.accepted > 150
    assert evidence.evictions > 0
    assert evidence.num_near_ties <= 1


def test_no_block_is_lost_in_a_thousand_mixed_requests() -> None:
    evidence = core_rules.blocks_add_up(1000, speculate="always")
    assert evidence.num_answers > 500
    assert evidence.drafted > evidence.accepted > 500
    assert evidence.preemptions > 0


@pytest.mark.parametrize("family", FAMILIES)
def test_a_later_turn_prefills_only_what_is_new(make_driver, family) -> None:
    make = functools.partial(make_driver, speculate="always")
    assert core_rules.a_turn_costs_what_is_new(make, family).reused_head > 150


@pytest.mark.parametrize("family", FAMILIES)
def test_poison_fails_alone(make_drafting, family) -> None:
    assert core_rules.poison_fails_alone(make_drafting, family).num_answers == 3


@pytest.mark.parametrize("family", FAMILIES)
def test_randomness_depends_on_seed_and_position_only(make_driver, make_drafting, family) -> None:
    with texts_read() as texts:
        core_rules.randomness_depends_on_seed_and_position_only(make_driver, family)
    with drafts_from(texts):
        evidence = core_rules.randomness_depends_on_seed_and_position_only(make_drafting, family)
    assert evidence.num_answers == 2
