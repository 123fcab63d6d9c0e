"""What is kept, and what goes first when room is needed: by class, then by last use, always the leaf first."""

from __future__ import annotations

from inference.core.kept import Content
from inference.core.prefix import Salts
from inference.core.retention import Retention
from inference.core.sequence import Sequence
from tests.inference.core.driver import admit
from tests.inference.core.kv_turns import (
    ACTIVE_S,
    SIZE,
    SOFT_TTL_S,
    classes,
    evict,
    fill,
    make_kv,
    start,
    turn,
)


def ids(first: int, num_blocks: int) -> list[int]:
    """The tokens of whole blocks that nobody else has."""
    return [first * 1000 + place for place in range(num_blocks * SIZE)]


def test_a_class_follows_from_who_holds_a_block_and_when_it_was_used() -> None:
    kv = make_kv()
    turn(kv, ids(1, 2), b"talk", now=0.0)
    turn(kv, ids(2, 3), now=0.0)  # of no conversation: never between two turns
    assert classes(kv) == {"active": 2, "idle": 3}
    kv.age(ACTIVE_S - 1)
    assert classes(kv) == {"active": 2, "idle": 3}
    kv.age(ACTIVE_S)
    assert classes(kv) == {"idle": 5}
    kv.age(SOFT_TTL_S)
    assert classes(kv) == {"stale": 5}
    turn(kv, [*ids(1, 2), 7, 8, 9, 10], b"talk", now=SOFT_TTL_S)
    assert classes(kv) == {"active": 3, "stale": 3}


def test_a_branch_that_was_left_is_superseded_but_what_both_share_is_not() -> None:
    kv = make_kv()
    common = ids(1, 2)
    turn(kv, [*common, *ids(2, 3)], b"talk")
    turn(kv, [*common, *ids(3, 1)], b"talk")
    assert classes(kv) == {"active": 3, "superseded": 3}
    turn(kv, [*common, *ids(2, 3), 5], b"talk")  # back to the first
    assert classes(kv) == {"active": 6, "superseded": 1}


def test_a_block_of_several_has_the_best_class() -> None:
    kv = make_kv()
    common = ids(1, 2)
    turn(kv, [*common, *ids(2, 1)], b"one")
    turn(kv, [*common, *ids(3, 1)], b"two", now=500.0)
    turn(kv, ids(4, 1), b"one", now=500.0)  # leaves its branch
    assert classes(kv) == {"active": 4, "superseded": 1}


def test_classes_go_in_order_and_inside_a_class_the_least_recently_used() -> None:
    kv = make_kv(num_blocks=24)
    shared = Salts(b"salt", b"operator", 2)
    kv.kept.share(b"operator")
    turn(kv, ids(1, 3), b"stale", now=0.0)
    turn(kv, ids(2, 2), b"idle", now=500.0)
    turn(kv, ids(3, 2), b"talk", now=1000.0)
    turn(kv, ids(4, 2), b"talk", now=1001.0)  # another branch
    turn(kv, ids(5, 2), b"other", now=1002.0, shared=shared)
    running = start(kv, ids(6, 2), b"closed", now=1003.0)
    kv.forget(b"closed")
    kv.preempt(running, now=1003.0)
    fill(kv)
    kinds = [Retention.CLOSED, Retention.SUPERSEDED, Retention.STALE, Retention.IDLE, Retention.ACTIVE]
    assert classes(kv) == {"closed": 2, "superseded": 2, "stale": 3, "idle": 2, "active": 2, "shared": 2}
    assert evict(kv, 13) == [
        *[kind for kind in kinds for _ in range(3 if kind is Retention.STALE else 2)],
        *[Retention.SHARED] * 2,
    ]


def test_the_leaf_goes_before_its_parent_and_what_is_left_is_still_found() -> None:
    kv = make_kv(num_blocks=12)
    first, second = ids(1, 5), ids(2, 5)
    turn(kv, first, b"first", now=0.0)
    turn(kv, second, b"second", now=1.0)
    turn(kv, first[: 3 * SIZE], now=2.0)  # its beginning is used again: the leaf is now the oldest of all
    fill(kv)
    for num_left, other in ((4, 5), (3, 5), (3, 4), (3, 3), (3, 2), (3, 1), (3, 0), (2, 0), (1, 0), (0, 0)):
        evict(kv, 1)
        for prompt, num_blocks in ((first, num_left), (second, other)):
            waiting = Sequence(admit([*prompt, 1]), 1, 0.0)
            assert kv.num_reusable(waiting) == num_blocks * SIZE


def test_twenty_idle_conversations_never_make_a_new_request_wait() -> None:
    """Retention is a bias: not even the active and the shared keep a block from a request that needs it."""
    kv = make_kv(num_blocks=64)
    kv.kept.share(b"operator")
    turn(kv, ids(99, 4), b"any", shared=Salts(b"salt", b"operator", 4))
    for number in range(20):
        turn(kv, ids(number, 3), b"%d" % number)
    assert kv.pool.num_free == 0
    assert start(kv, ids(50, 64), b"new").blocks
    assert (kv.pool.num_cached, kv.pool.num_used) == (0, 64)


def test_a_long_limit_on_the_answer_reserves_nothing_and_two_conversations_stay_warm() -> None:
    kv = make_kv(num_blocks=16)
    history = {b"one": ids(1, 6), b"two": ids(2, 6)}
    for round_ in range(3):
        for key, prompt in history.items():
            sequence = turn(kv, prompt, key, now=float(round_))
            assert sequence.reused["head"] == (len(prompt) - 1 if round_ else 0)
    assert kv.pool.num_evicted == 0


def test_an_unfinished_prompt_gives_back_the_blocks_it_did_not_fill() -> None:
    kv = make_kv()
    sequence = start(kv, ids(1, 2), b"talk")
    sequence.token_ids += ids(2, 8)
    kv.preempt(sequence, 0.0)
    assert kv.acquire(sequence, 0.0)
    assert kv.pool.num_used == 10
    kv.finish(sequence, 0.0)
    assert (kv.pool.num_used, kv.pool.num_cached) == (0, 2)


def test_an_evicted_full_block_is_handed_out_with_all_that_names_it_before_it_is_lost() -> None:
    kv = make_kv(num_blocks=4)
    handed: list[Content] = []
    kv.kept.on_evict = handed.append
    prompt = ids(1, 3)
    turn(kv, [*prompt, 5], b"talk", now=0.0)
    turn(kv, ids(2, 4), now=1.0)
    named = [one.identity for one in handed]
    assert [one.token_ids for one in named] == [tuple(prompt[start : start + SIZE]) for start in (8, 4, 0)]
    assert {one.salt for one in named} == {b"salt"}
    assert {one.conversations for one in handed} == {(b"talk",)}
    chain = list(reversed(named))
    assert [one.parent_key for one in chain] == [kv.prefix.root_key, chain[0].key, chain[1].key]
    for one in chain:
        assert kv.prefix.child_key(one.parent_key, one.salt, one.token_ids) == one.key


def test_what_was_forgotten_is_never_handed_out() -> None:
    kv = make_kv(num_blocks=4)
    handed: list[Content] = []
    kv.kept.on_evict = handed.append
    running = start(kv, ids(1, 3), b"talk")
    kv.forget(b"talk")
    kv.preempt(running, 0.0)
    assert classes(kv) == {"closed": 3}
    turn(kv, ids(2, 4))
    assert handed == []
