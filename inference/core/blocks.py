"""Which KV blocks are free, cached or used.

A block is *used* while sequences hold it (reference count > 0), *cached* when nobody holds it but its content can
still be reused, else *free*. Joins the free blocks (`slabs`) and the order of the cached ones (`retention`); every
operation is O(log slabs) at most. Knows numbers only: no tensors, no token ids.
"""

from __future__ import annotations

from collections.abc import Callable

from inference.core.retention import EvictionOrder, Hold, Lifetimes, Retention
from inference.core.slabs import Slabs


class NoFreeBlocks(Exception):
    """Every block is in use; the caller checks `num_available` first or preempts somebody."""


class BlockPool:
    """Reference counts of `num_blocks` blocks."""

    def __init__(
        self, slabs: Slabs, lifetimes: Lifetimes, on_evict: Callable[[int, Retention], None]
    ) -> None:
        """`on_evict(block, retention)` is called before a cached block gets a new owner."""
        self.num_blocks = slabs.num_free
        self.num_used = 0
        self.num_evicted = 0
        self._slabs = slabs
        self._cached = EvictionOrder(lifetimes)
        self._on_evict = on_evict
        self._references = [0] * self.num_blocks

    @property
    def num_free(self) -> int:
        return self._slabs.num_free

    @property
    def num_cached(self) -> int:
        return len(self._cached)

    @property
    def num_available(self) -> int:
        """Blocks that `take` can still hand out."""
        return self.num_free + self.num_cached

    @property
    def num_committed(self) -> int:
        """Blocks whose memory is taken."""
        return self._slabs.num_taken_blocks

    def cached_by_class(self) -> dict[Retention, int]:
        return self._cached.counts()

    def references(self, block: int) -> int:
        return self._references[block]

    def is_cached(self, block: int) -> bool:
        return block in self._cached

    def cached_blocks(self) -> list[int]:
        return self._cached.blocks()

    def hold(self, block: int) -> Hold:
        """What holds a cached block."""
        return self._cached.hold(block)

    def age(self, now: float) -> None:
        """It is `now`, for everything that follows."""
        self._cached.age(now)

    def take(self) -> int:
        """A block for one owner: a free one, else the cached one whose class and last use come first."""
        if self.num_free:
            block = self._slabs.take()
        elif self.num_cached:
            block, retention = self._cached.pop()
            self.num_evicted += 1
            self._on_evict(block, retention)
        else:
            raise NoFreeBlocks
        self._references[block] = 1
        self.num_used += 1
        return block

    def retain(self, block: int) -> None:
        """One more owner of a used or cached block."""
        if self._references[block] == 0:
            self._cached.remove(block)
            self.num_used += 1
        self._references[block] += 1

    def release(self, block: int, hold: Hold | None) -> None:
        """One owner fewer. The last one leaves the block cached when something can reach its content, else free.

        Release a chain from its tail to its head: then the leaf is always evicted before its parent.
        """
        assert self._references[block] > 0, f"block {block} is released more often than it was taken"
        self._references[block] -= 1
        if self._references[block]:
            return
        self.num_used -= 1
        if hold is None:
            self._slabs.put_back(block)
        else:
            self._cached.add(block, hold)

    def rehold(self, block: int, hold: Hold | None) -> None:
        """Something else holds a cached block now; when nothing can reach it any more it becomes free."""
        if hold is not None:
            self._cached.move(block, hold)
        else:
            self._cached.remove(block)
            self._slabs.put_back(block)

    def give_back_slabs(self) -> list[range]:
        """The blocks of slabs that hold nothing; their memory is the caller's to return."""
        return self._slabs.give_back_empty()

    def imbalance(self) -> list[str]:
        """Whether free + cached + used == total, by counts alone: cheap at any time. Empty when all is well."""
        counts = (
            f"free {self.num_free} + cached {self.num_cached} + used {self.num_used} != {self.num_blocks}"
        )
        total = self.num_free + self.num_cached + self.num_used
        return [] if total == self.num_blocks else [counts]

    def problems(self) -> list[str]:
        """Every violation of what is promised here, block by block; empty when all is well."""
        found = [*self.imbalance(), *self._slabs.problems(), *self._cached.problems()]
        free, cached = set(self._slabs.free_blocks()), set(self._cached.blocks())
        used = {block for block, count in enumerate(self._references) if count}
        if self.num_used != len(used) or any(count < 0 for count in self._references):
            found.append("the count of used blocks is wrong, or a reference count is negative")
        if used & (free | cached):
            found.append("a free or cached block is still referenced")
        if free & cached:
            found.append("a block is free and cached")
        return found
