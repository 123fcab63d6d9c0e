"""Which KV blocks are free, cached or used.

A block is *used* while sequences hold it (reference count > 0), *cached* when nobody holds it but its content can
still be reused, else *free*. Knows numbers only: no tensors, no token ids. Blocks that were never used are handed
out in ascending order and only when no returned block is free, so memory that the system commits on first
touch grows with the load up to the budget.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable


class NoFreeBlocks(Exception):
    """Every block is in use; the caller checks `num_available` first or preempts somebody."""


class BlockPool:
    """Reference counts and the least-recently-used order of `num_blocks` blocks."""

    def __init__(self, num_blocks: int, on_evict: Callable[[int], None]) -> None:
        """`on_evict(block)` is called before a cached block gets a new owner."""
        self.num_blocks = num_blocks
        self.num_evicted = 0
        self._on_evict = on_evict
        self._references = [0] * num_blocks
        self._returned: list[int] = []
        self._num_touched = 0
        self._cached: OrderedDict[int, None] = OrderedDict()  # least recently used first

    @property
    def num_free(self) -> int:
        return len(self._returned) + self.num_blocks - self._num_touched

    @property
    def num_cached(self) -> int:
        return len(self._cached)

    @property
    def num_used(self) -> int:
        return sum(1 for count in self._references if count)

    @property
    def num_available(self) -> int:
        """Blocks that `take` can still hand out."""
        return self.num_free + self.num_cached

    def references(self, block: int) -> int:
        return self._references[block]

    def is_cached(self, block: int) -> bool:
        return block in self._cached

    def cached_blocks(self) -> list[int]:
        return list(self._cached)

    def take(self) -> int:
        """A block for one owner: a free one, else the least recently used cached one."""
        if self._returned:
            block = self._returned.pop()
        elif self._num_touched < self.num_blocks:
            block = self._num_touched
            self._num_touched += 1
        elif self._cached:
            block, _ = self._cached.popitem(last=False)
            self.num_evicted += 1
            self._on_evict(block)
        else:
            raise NoFreeBlocks
        self._references[block] = 1
        return block

    def retain(self, block: int) -> None:
        """One more owner of a used or cached block."""
        if self._references[block] == 0:
            del self._cached[block]
        self._references[block] += 1

    def release(self, block: int, *, is_reusable: bool) -> None:
        """One owner fewer. The last one leaves the block cached when its content `is_reusable`, else free.

        Release a chain from its tail to its head: then the leaf is always evicted before its parent.
        """
        assert self._references[block] > 0, f"block {block} is released more often than it was taken"
        self._references[block] -= 1
        if self._references[block]:
            return
        if is_reusable:
            self._cached[block] = None
        else:
            self._returned.append(block)

    def uncache(self, block: int) -> None:
        """A cached block whose content nobody can reach any more becomes free."""
        del self._cached[block]
        self._returned.append(block)

    def problems(self) -> list[str]:
        """Violations of free + cached + used == total and of the reference counts; empty when all is well."""
        found = []
        if self.num_free + self.num_cached + self.num_used != self.num_blocks:
            found.append(
                f"free {self.num_free} + cached {self.num_cached} + used {self.num_used} != {self.num_blocks}"
            )
        if any(count < 0 for count in self._references):
            found.append("negative reference count")
        if any(self._references[block] for block in [*self._returned, *self._cached]):
            found.append("a free or cached block is still referenced")
        if len(set(self._returned)) != len(self._returned) or not self._cached.keys().isdisjoint(
            self._returned
        ):
            found.append("a block is free twice")
        return found
