from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from inference.core.blocks import BlockPool, NoFreeBlocks


class PoolAgainstModel(RuleBasedStateMachine):
    """A pool of few blocks against plain dictionaries: no block lost, none shared by mistake, LRU order kept."""

    def __init__(self) -> None:
        super().__init__()
        self.evicted: list[int] = []
        self.pool = BlockPool(6, on_evict=self.evicted.append)
        self.references: dict[int, int] = {}
        self.cached: list[int] = []  # least recently used first

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
            assert self.evicted == [block] == self.cached[:1]
            self.cached.remove(block)
        self.references[block] = 1

    @precondition(lambda self: self.references or self.cached)
    @rule(choice=st.integers(0, 100))
    def retain(self, choice: int) -> None:
        candidates = [*self.references, *self.cached]
        block = candidates[choice % len(candidates)]
        self.pool.retain(block)
        if block in self.cached:
            self.cached.remove(block)
        self.references[block] = self.references.get(block, 0) + 1

    @precondition(lambda self: self.references)
    @rule(choice=st.integers(0, 100), is_reusable=st.booleans())
    def release(self, choice: int, is_reusable: bool) -> None:
        block = list(self.references)[choice % len(self.references)]
        self.pool.release(block, is_reusable=is_reusable)
        self.references[block] -= 1
        if self.references[block] == 0:
            del self.references[block]
            if is_reusable:
                self.cached.append(block)

    @precondition(lambda self: self.cached)
    @rule(choice=st.integers(0, 100))
    def uncache(self, choice: int) -> None:
        block = self.cached.pop(choice % len(self.cached))
        self.pool.uncache(block)

    @invariant()
    def counts_agree(self) -> None:
        assert self.pool.problems() == []
        assert self.pool.num_used == len(self.references)
        assert self.pool.num_cached == len(self.cached)
        assert self.pool.num_free == self.pool.num_blocks - len(self.references) - len(self.cached)
        for block, count in self.references.items():
            assert self.pool.references(block) == count


TestPool = PoolAgainstModel.TestCase


def test_releasing_more_often_than_taken_is_caught() -> None:
    pool = BlockPool(2, on_evict=lambda block: None)
    block = pool.take()
    pool.release(block, is_reusable=False)
    with pytest.raises(AssertionError, match="more often"):
        pool.release(block, is_reusable=False)


def test_untouched_blocks_are_used_only_when_no_returned_one_is_free() -> None:
    pool = BlockPool(100, on_evict=lambda block: None)
    for _ in range(50):
        pool.release(pool.take(), is_reusable=False)
    assert pool.take() == 0
