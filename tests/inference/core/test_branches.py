"""A conversation keeps a head per branch: forks share full blocks, going back hits, forgetting leaves nothing."""

from __future__ import annotations

import numpy as np
import pytest

from inference.core import conversations
from inference.core.prefix import Salts
from inference.core.sequence import Sequence
from tests.inference.core.driver import admit
from tests.inference.core.kv_turns import SIZE, classes, make_kv, start, turn

COMMON = list(range(10))  # two blocks and a half
FIRST, SECOND = [*COMMON, *range(100, 107)], [*COMMON, *range(200, 207)]


def reusable(kv, ids: list[int], conversation: bytes = b"talk", salt: bytes = b"salt") -> int:
    return kv.num_reusable(Sequence(admit(ids, conversation=conversation, salt=salt), 1, 0.0))


def test_going_back_to_a_branch_reuses_all_of_it_but_the_last_token() -> None:
    kv = make_kv()
    turn(kv, FIRST, b"talk")
    fork = turn(kv, SECOND, b"talk")
    assert fork.reused["head"] == len(COMMON)  # the partial block too: copied, not written into
    first, second = list(FIRST), list(SECOND)
    for branch in (first, second, first):
        assert turn(kv, [*branch, 7], b"talk").reused["head"] == len(branch)
        branch.append(7)


def test_a_fork_takes_over_full_blocks_and_copies_the_private_tail() -> None:
    copies: list[tuple[int, int]] = []
    kv = make_kv()
    kv._actions = type(kv._actions)(lambda *pair: copies.append(pair), lambda *_: None)
    first = start(kv, [*COMMON, 1], b"talk")
    tail = first.blocks[2]
    kv.finish(first, 0.0)
    fork = start(kv, [*COMMON, 2, 3], b"talk")
    assert copies == [(tail, fork.blocks[2])]
    assert fork.blocks[:2] == first.blocks[:2] or kv.pool.references(fork.blocks[0]) == 1
    kv.finish(fork, 0.0)
    go_on = start(kv, [*COMMON, 1, 4], b"talk")
    assert go_on.blocks[2] == tail  # the branch that alone holds its tail writes on into it
    assert len(copies) == 1


def test_going_on_replaces_the_head_it_goes_on_from_and_only_that() -> None:
    kv = make_kv()
    turn(kv, FIRST, b"talk")
    turn(kv, SECOND, b"talk")
    turn(kv, [*SECOND, 7], b"talk")
    assert kv.kept.conversations.num_heads == 2
    assert (reusable(kv, [*FIRST, 1]), reusable(kv, [*SECOND, 7, 1])) == (len(FIRST), len(SECOND) + 1)


def test_a_turn_that_ends_before_it_adds_anything_keeps_the_branch_it_went_back_to() -> None:
    kv = make_kv()
    turn(kv, FIRST, b"talk")
    turn(kv, SECOND, b"talk")
    turn(kv, FIRST[:-2], b"talk")
    assert reusable(kv, [*FIRST, 1]) == len(FIRST)
    assert kv.kept.conversations.find(b"talk", b"salt").tip.token_ids.tolist() == FIRST


def test_branches_are_bounded_and_the_one_left_longest_ago_goes_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(conversations, "MAX_BRANCHES", 3)
    kv = make_kv()
    branches = [[*COMMON, *range(n * 100, n * 100 + 6)] for n in range(1, 5)]
    for branch in (*branches[:3], branches[0], branches[3]):
        turn(kv, branch, b"talk")
    kept = [head.token_ids.tolist() for head in kv.kept.conversations.find(b"talk", b"salt").heads]
    assert kept == [branches[2], branches[0], branches[3]]


def test_conversations_are_bounded_and_the_oldest_goes_with_all_it_reached(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(conversations, "MAX_CONVERSATIONS", 4)
    kv = make_kv()
    for number in range(6):
        turn(kv, [number, *range(7)], b"%d" % number)
    assert len(kv.kept.conversations) == 4
    assert [reusable(kv, [number, *range(7), 1], b"%d" % number) for number in range(6)] == [0, 0, 8, 8, 8, 8]
    assert kv.pool.num_cached == 4 * 2


def test_two_tabs_end_in_two_branches_whichever_ends_first() -> None:
    kv = make_kv()
    turn(kv, COMMON, b"talk")
    one, two = start(kv, FIRST, b"talk"), start(kv, SECOND, b"talk")
    assert not set(one.blocks[2:]) & set(two.blocks[2:])
    kv.finish(two, 0.0)
    kv.finish(one, 0.0)
    assert (reusable(kv, [*FIRST, 1]), reusable(kv, [*SECOND, 1])) == (len(FIRST), len(SECOND))
    assert kv.problems() == []


def test_a_preempted_sequence_finds_everything_again_its_partial_block_too() -> None:
    kv = make_kv()
    sequence = start(kv, FIRST, b"talk")
    sequence.token_ids.append(7)
    kv.preempt(sequence, 0.0)
    assert (kv.pool.num_used, kv.pool.num_cached) == (0, 5)
    assert kv.acquire(sequence, 0.0)
    assert sequence.num_computed == len(FIRST)


def test_a_tail_that_two_heads_hold_is_copied_and_never_written_into() -> None:
    kv = make_kv()
    first = start(kv, COMMON, b"talk")
    other = kv.kept.conversations.enter(b"other", b"salt", is_closed=False)
    kv.kept.conversations.keep(other, np.array(COMMON), first.blocks)
    blocks = list(first.blocks)
    kv.finish(first, 0.0)
    assert start(kv, [*COMMON, 1], b"talk").blocks[2] != blocks[2]


# --- forgetting


def test_forgetting_drops_every_branch_and_what_no_head_holds_any_more() -> None:
    """The cut answer's full block is published, but no head holds it: it used to stay until it was evicted."""
    kv = make_kv()
    turn(kv, FIRST, b"talk")
    turn(kv, SECOND, b"talk")
    cut = start(kv, [*COMMON, 5], b"talk")
    cut.token_ids += range(300, 312)
    for _ in range(12):
        kv.extend(cut, 0.0)
        cut.advance(1)
    kv.publish(cut)
    kv.finish(cut, 0.0, keep_tokens=0)
    cached = kv.pool.num_cached
    kv.forget(b"talk")
    assert (kv.pool.num_cached, kv.num_forgotten) == (0, cached)
    assert len(kv.prefix) == len(kv.kept.conversations) == 0
    assert kv.problems() == []


@pytest.mark.parametrize("other", [b"other", b""], ids=["another conversation", "no conversation"])
def test_forgetting_leaves_what_somebody_else_reached(other: bytes) -> None:
    kv = make_kv()
    turn(kv, FIRST, b"talk")
    turn(kv, [*FIRST[:9], 1, 2], other)
    kv.forget(b"talk")
    assert kv.pool.num_cached == (3 if other else 2)
    assert reusable(kv, FIRST, b"third") == 8
    kv.forget(b"other")
    assert kv.pool.num_cached == (0 if other else 2)


def test_a_forgotten_conversation_keeps_only_what_its_sequences_need_and_nothing_after_them() -> None:
    kv = make_kv()
    turn(kv, FIRST, b"talk")
    one, two = start(kv, [*FIRST, 1], b"talk"), start(kv, SECOND, b"talk")
    kv.forget(b"talk")
    assert reusable(kv, [*FIRST, 1, 2]) == len(FIRST) // SIZE * SIZE  # by content, until they end
    kv.preempt(one, 0.0)
    assert classes(kv) == {"closed": 2}
    assert kv.acquire(one, 0.0)
    kv.finish(one, 0.0)
    assert kv.pool.num_cached == 2
    kv.finish(two, 0.0)
    assert (kv.pool.num_cached, kv.pool.num_used) == (0, 0)
    assert kv.num_forgotten > 0


def test_a_conversation_that_goes_on_after_it_was_forgotten_is_a_new_one() -> None:
    kv = make_kv()
    old = start(kv, FIRST, b"talk")
    kv.forget(b"talk")
    turn(kv, SECOND, b"talk")
    kv.finish(old, 0.0)
    assert reusable(kv, [*SECOND, 1]) == len(SECOND)
    assert reusable(kv, [*FIRST, 1]) == len(COMMON)  # what the new one has of it
    assert kv.problems() == []


def test_the_key_of_one_owner_opens_nothing_to_another() -> None:
    kv = make_kv()
    turn(kv, FIRST, b"talk", salt=b"one")
    assert reusable(kv, [*FIRST, 1], salt=b"two") == 0
    turn(kv, FIRST, b"talk", salt=b"two")
    assert reusable(kv, [*FIRST, 1], salt=b"one") == len(FIRST)
    kv.forget(b"talk")
    assert kv.pool.num_cached == 0


def test_two_that_computed_the_same_at_once_share_it_and_the_last_one_forgotten_takes_it_along() -> None:
    kv = make_kv()
    both = [Sequence(admit(FIRST, conversation=key), 1, 0.0) for key in (b"one", b"two")]
    for sequence in both:
        assert kv.acquire(sequence, 0.0)
        sequence.advance(len(FIRST))
    for sequence in both:
        kv.publish(sequence)
        kv.finish(sequence, 0.0)
    assert kv.pool.num_cached == 4 + 2  # four full blocks and two tails
    kv.forget(b"one")
    assert reusable(kv, [*FIRST, 1], b"two") == len(FIRST)
    kv.forget(b"two")
    assert kv.pool.num_cached == 0
    assert kv.problems() == []


# --- the operator's prefixes

SHARED = Salts(b"salt", b"operator", 2)


def test_a_private_child_under_a_shared_parent_is_found_by_its_owner_only() -> None:
    kv = make_kv()
    kv.kept.share(b"operator")
    turn(kv, [*range(8), 1, 2, 3, 4], b"talk", shared=SHARED)
    same = turn(kv, [*range(8), 1, 2, 3, 4, 5], shared=SHARED)
    assert (same.reused["shared"], same.reused["prefix"]) == (8, 4)
    stranger = turn(kv, [*range(8), 1, 2, 3, 4, 5], salt=b"tlas", shared=Salts(b"tlas", b"operator", 2))
    assert (stranger.reused["shared"], stranger.reused["prefix"]) == (8, 0)
    private = turn(kv, [*range(8), 1], salt=b"y")
    assert sum(private.reused.values()) == 0
    again = turn(kv, [*range(8), 1, 2, 3, 4, 5], salt=b"tlas", shared=Salts(b"tlas", b"operator", 2))
    assert (again.reused["shared"], again.reused["prefix"]) == (8, 4)  # equal words of two owners, two keys


def test_forgetting_leaves_the_operators_prefix_and_unsharing_makes_it_ordinary() -> None:
    kv = make_kv()
    kv.kept.share(b"operator")
    turn(kv, [*range(8), 1, 2, 3, 4], b"talk", shared=SHARED)
    kv.forget(b"talk")
    assert classes(kv) == {"shared": 2}
    kv.kept.unshare(b"operator")
    assert classes(kv) == {"idle": 2}
    assert kv.problems() == []
