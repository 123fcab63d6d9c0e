"""Declared beginnings are shared between users, exactly and nothing else, while enough prompts begin with them."""

from __future__ import annotations

import pytest

from inference.core.messages import DeclaredPrefix
from inference.core.shared_prefixes import WINDOW_PROMPTS, SharedPrefixes

SIZE = 4
SYSTEM = DeclaredPrefix("support", list(range(10)))  # two whole blocks and a half
PROMPT = [*SYSTEM.token_ids, 40, 41, 42]
OTHER = [7, *PROMPT]


def measured(*seen: tuple[bytes, list[int]], threshold: float = 0.5) -> SharedPrefixes:
    prefixes = SharedPrefixes(SIZE, threshold)
    prefixes.declare([SYSTEM])
    for salt, ids in seen:
        prefixes.observe(salt, ids)
    return prefixes


def num_shared(prefixes: SharedPrefixes, token_ids: list[int]) -> int:
    """Tokens."""
    return SIZE * prefixes.salts(b"own", token_ids).num_shared_blocks


def test_it_switches_on_when_enough_prompts_of_two_owners_begin_with_it() -> None:
    prefixes = measured((b"a", PROMPT), (b"a", PROMPT), (b"c", OTHER))
    assert num_shared(prefixes, PROMPT) == 0, "one owner alone has nobody to share with"
    prefixes.observe(b"b", PROMPT)
    assert num_shared(prefixes, PROMPT) == 8
    (report,) = prefixes.reports()
    assert (report.name, report.num_tokens, report.overlap, report.is_shared) == ("support", 10, 0.75, True)


def test_too_few_prompts_with_it_leave_it_off() -> None:
    prefixes = measured((b"a", PROMPT), (b"b", PROMPT), *[(b"c", OTHER)] * 3, threshold=0.9)
    assert num_shared(prefixes, PROMPT) == 0
    assert prefixes.reports()[0].overlap == pytest.approx(0.4)


def test_it_stays_on_down_to_half_the_threshold_and_comes_back_at_the_whole() -> None:
    prefixes = measured((b"a", PROMPT), (b"b", PROMPT))
    for _ in range(6):
        prefixes.observe(b"c", OTHER)
    assert prefixes.reports()[0].overlap == 0.25
    assert num_shared(prefixes, PROMPT) == 8
    prefixes.observe(b"c", OTHER)
    assert num_shared(prefixes, PROMPT) == 0
    prefixes.observe(b"a", PROMPT)  # 3 of 10: above half the threshold again, which is not enough
    assert num_shared(prefixes, PROMPT) == 0
    for _ in range(4):
        prefixes.observe(b"b", PROMPT)
    assert num_shared(prefixes, PROMPT) == 8


def test_only_recent_prompts_count() -> None:
    prefixes = measured((b"a", PROMPT), (b"b", PROMPT))
    for _ in range(WINDOW_PROMPTS):
        prefixes.observe(b"c", OTHER)
    assert prefixes.reports()[0].overlap == 0.0
    for _ in range(WINDOW_PROMPTS):
        prefixes.observe(b"a", PROMPT)
    assert prefixes.reports()[0].overlap == 1.0
    assert num_shared(prefixes, PROMPT) == 0, "the other owner's prompt is forgotten too"


def test_threshold_zero_shares_at_once_and_for_ever() -> None:
    prefixes = measured(threshold=0.0)
    assert list(prefixes.shared().values()) == [SYSTEM.token_ids]
    prefixes.observe(b"c", OTHER)
    assert num_shared(prefixes, PROMPT) == 8


def test_a_prompt_must_begin_with_all_of_it() -> None:
    """The first block is equal, but the operator declared no such beginning."""
    prefixes = measured(threshold=0.0)
    assert num_shared(prefixes, [*range(9), 99, 1, 2]) == 0
    assert num_shared(prefixes, list(range(9))) == 0
    assert num_shared(prefixes, OTHER) == 0


def test_of_nested_prefixes_the_longest_that_is_shared_counts() -> None:
    prefixes = SharedPrefixes(SIZE, 0.5)
    prefixes.declare([SYSTEM, DeclaredPrefix("longer", [*SYSTEM.token_ids, 40, 41])])
    for salt in (b"a", b"b", b"c"):
        prefixes.observe(salt, [*SYSTEM.token_ids, 50])
    assert num_shared(prefixes, PROMPT) == 8
    for salt in (b"a", b"b", b"c"):
        prefixes.observe(salt, PROMPT)
    assert num_shared(prefixes, PROMPT) == 12


def test_a_prefix_shorter_than_a_block_is_reported_and_shares_nothing() -> None:
    prefixes = SharedPrefixes(SIZE, 0.0)
    prefixes.declare([DeclaredPrefix("short", [1, 2, 3])])
    assert num_shared(prefixes, [1, 2, 3, 4, 5]) == 0
    assert prefixes.shared() == {}
    assert prefixes.reports()[0].num_tokens == 3


def test_declaring_again_replaces_and_keeps_what_was_measured_of_the_same() -> None:
    prefixes = measured((b"a", PROMPT), (b"b", PROMPT))
    prefixes.declare([SYSTEM, DeclaredPrefix("new", [5] * 8)])
    assert [report.is_shared for report in prefixes.reports()] == [True, False]
    prefixes.declare([DeclaredPrefix("support", [9, *SYSTEM.token_ids])])
    assert [report.is_shared for report in prefixes.reports()] == [False]
    assert num_shared(prefixes, PROMPT) == 0
