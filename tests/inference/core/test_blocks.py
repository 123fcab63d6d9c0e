from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from inference.core.blocks import BlockPool, NoFreeBlocks
from inference.core.retention import Hold, Lifetimes, Retention
from inference.core.slabs import Slabs

LIFETIMES = Lifetimes(active_s=10.0, soft_ttl_s=100.0)


def make_pool(num_blocks: int, slab_blocks: int = 2) -> BlockPool:
    slabs = Slabs(num_blocks, slab_blocks, is_elastic=True)
    return BlockPool(slabs, LIFETIMES, on_evict=lambda block, retention: None)


def retention_of(hold: Hold, unused_s: float) -> Retention:
    """The class that follows from what holds a block and how long nobody used it."""
    if hold in (Hold.HEAD, Hold.CONTENT) and unused_s >= LIFETIMES.soft_ttl_s:
        return Retention.STALE
    if hold is Hold.HEAD:
        return Retention.ACTIVE if unused_s < LIFETIMES.active_s else Retention.IDLE
    return {
        Hold.CLOSED: Retention.CLOSED,
        Hold.SUPERSEDED: Retention.SUPERSEDED,
        Hold.CONTENT: Retention.IDLE,
        Hold.SHARED: Retention.SHARED,
    }[hold]


class PoolAgainstModel(RuleBasedStateMachine):
    """A pool of few blocks against plain dictionaries: no block lost, none shared by mistake, the order kept."""

    def __init__(self) -> None:
        super().__init__()
        self.evicted: list[tuple[int, Retention]] = []
        slabs = Slabs(7, 3, is_elastic=True)
        self.pool = BlockPool(slabs, LIFETIMES, on_evict=lambda *what: self.evicted.append(what))
        self.references: dict[int, int] = {}
        self.cached: dict[int, tuple[Hold, float]] = {}  # when each was last used
        self.now = 0.0

    def first_out(self) -> set[tuple[int, Retention]]:
        """Blocks that may go next: of the lowest class the ones used longest ago."""
        ranks = {
            block: (retention_of(hold, self.now - used_at), used_at)
            for block, (hold, used_at) in self.cached.items()
        }
        best = min(ranks.values())
        return {(block, rank[0]) for block, rank in ranks.items() if rank == best}

    @rule()
    def take(self) -> None:
        if len(self.references) == self.pool.num_blocks:
            with pytest.raises(NoFreeBlocks):
                self.pool.take()
            return
        had_free = self.pool.num_free > 0
        self.evicted.clear()
        block = self.pool.take()
        assert block not in self.references
        if had_free:
            assert block not in self.cached
            assert not self.evicted
        else:
            assert len(self.evicted) == 1
            assert self.evicted[0][0] == block
            assert self.evicted[0] in self.first_out()
            del self.cached[block]
        self.references[block] = 1

    @rule(seconds=st.sampled_from([1.0, 9.0, 10.0, 90.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.pool.age(self.now)

    @precondition(lambda self: self.references or self.cached)
    @rule(choice=st.integers(0, 100))
    def retain(self, choice: int) -> None:
        candidates = [*self.references, *self.cached]
        block = candidates[choice % len(candidates)]
        self.pool.retain(block)
        self.cached.pop(block, None)
        self.references[block] = self.references.get(block, 0) + 1

    @precondition(lambda self: self.references)
    @rule(choice=st.integers(0, 100), hold=st.sampled_from([None, *Hold]))
    def release(self, choice: int, hold: Hold | None) -> None:
        block = list(self.references)[choice % len(self.references)]
        self.pool.release(block, hold)
        self.references[block] -= 1
        if self.references[block] == 0:
            del self.references[block]
            if hold is not None:
                self.cached[block] = (hold, self.now)

    @precondition(lambda self: self.cached)
    @rule(choice=st.integers(0, 100), hold=st.sampled_from([None, *Hold]))
    def rehold(self, choice: int, hold: Hold | None) -> None:
        block = list(self.cached)[choice % len(self.cached)]
        self.pool.rehold(block, hold)
        before = self.cached.pop(block)
        if hold is not None:
            self.cached[block] = before if before[0] is hold else (hold, self.now)

    @rule()
    def give_back(self) -> None:
        self.pool.give_back_slabs()
        busy = {block // 3 for block in [*self.references, *self.cached]}
        assert self.pool.num_committed == sum(min(3, 7 - slab * 3) for slab in busy)

    @invariant()
    def counts_agree(self) -> None:
        assert self.pool.problems() == []
        assert self.pool.num_used == len(self.references)
        assert self.pool.num_cached == len(self.cached)
        assert self.pool.num_free == self.pool.num_blocks - len(self.references) - len(self.cached)
        for block, count in self.references.items():
            assert self.pool.references(block) == count
        classes = [retention_of(hold, self.now - used_at) for hold, used_at in self.cached.values()]
        assert self.pool.cached_by_class() == {one: classes.count(one) for one in Retention}


TestPool = PoolAgainstModel.TestCase


def test_releasing_more_often_than_taken_is_caught() -> None:
    pool = make_pool(2)
    block = pool.take()
    pool.release(block, None)
    with pytest.raises(AssertionError, match="more often"):
        pool.release(block, None)


def test_the_lowest_slabs_are_filled_first_and_another_is_taken_only_when_they_are_full() -> None:
    pool = make_pool(100, slab_blocks=10)
    for _ in range(50):
        pool.release(pool.take(), None)
    assert pool.num_committed == 10
    blocks = [pool.take() for _ in range(25)]
    assert sorted(blocks) == list(range(25))
    assert pool.num_committed == 30
    for block in (3, 14, 22):
        pool.release(block, None)
    assert [pool.take() for _ in range(3)] == [3, 14, 22]


def test_an_empty_slab_is_given_back_once_and_taken_again_when_it_is_needed() -> None:
    pool = make_pool(8, slab_blocks=4)
    blocks = [pool.take() for _ in range(8)]
    for block in blocks[1:]:
        pool.release(block, None)
    assert pool.give_back_slabs() == [range(4, 8)]
    assert pool.give_back_slabs() == []
    assert [pool.take() for _ in range(7)] == [1, 2, 3, 4, 5, 6, 7] or pool.num_committed == 8


def test_memory_that_is_taken_at_once_stays() -> None:
    pool = BlockPool(Slabs(8, 4, is_elastic=False), LIFETIMES, on_evict=lambda *_: None)
    assert pool.num_committed == 8
    pool.release(pool.take(), None)
    assert pool.give_back_slabs() == []
    assert pool.num_committed == 8


def test_a_pool_of_a_hundred_thousand_blocks_is_never_searched() -> None:
    """Takes a second; one search of the pool per block, for a victim, a count or a class, would take hours."""
    pool = make_pool(100_000, slab_blocks=1000)
    taken = [pool.take() for _ in range(100_000)]
    for number, block in enumerate(taken):
        pool.age(number / 1000)
        pool.release(block, (Hold.HEAD, Hold.CONTENT, Hold.SUPERSEDED)[number % 3])
        pool.rehold(block, Hold.SUPERSEDED)
    for number in range(100_000):
        pool.age(100 + number / 1000)
        pool.release(pool.take(), Hold.HEAD)
        assert pool.imbalance() == []
        assert sum(pool.cached_by_class().values()) == 100_000
    assert pool.num_evicted == 100_000
