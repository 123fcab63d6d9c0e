"""Free blocks, and the slabs of memory they lie in.

A slab is a row of neighbouring blocks whose memory is taken and given back together. Blocks are handed out from
slabs that are taken already, the lowest first, so the load gathers in low slabs and high ones run empty; another
slab is taken only when those are full. Knows numbers only; the memory itself belongs to the KV tensors.
"""

from __future__ import annotations

import heapq


class Slabs:
    """The free ones among `num_blocks` blocks."""

    def __init__(self, num_blocks: int, slab_blocks: int, *, is_elastic: bool) -> None:
        """Memory that is not elastic is taken at once and never given back."""
        self.num_free = num_blocks
        self._slab_blocks = slab_blocks
        self._is_elastic = is_elastic
        starts = range(0, num_blocks, slab_blocks)
        self._slabs = [range(start, min(start + slab_blocks, num_blocks)) for start in starts]
        self._free = [list(reversed(slab)) for slab in self._slabs]  # the next one at the end
        numbers = range(len(self._slabs))
        self._taken = set() if is_elastic else set(numbers)
        self._untaken = list(numbers) if is_elastic else []  # heap
        self._with_room = [] if is_elastic else list(numbers)  # heap of taken slabs; full ones leave it late
        self._listed = set(self._with_room)
        self._empty: set[int] = set()  # taken slabs without a block in use

    @property
    def num_taken_blocks(self) -> int:
        """Blocks of slabs whose memory is taken."""
        return sum(len(self._slabs[number]) for number in self._taken)

    def take(self) -> int:
        """A free block; there must be one."""
        number = self._lowest_with_room()
        self.num_free -= 1
        self._empty.discard(number)
        return self._free[number].pop()

    def put_back(self, block: int) -> None:
        number = block // self._slab_blocks
        free = self._free[number]
        if number not in self._listed:
            self._listed.add(number)
            heapq.heappush(self._with_room, number)
        free.append(block)
        self.num_free += 1
        if len(free) == len(self._slabs[number]):
            self._empty.add(number)

    def give_back_empty(self) -> list[range]:
        """The blocks of every empty slab; their memory is the caller's to return."""
        if not self._is_elastic:
            return []
        given_back = sorted(self._empty)
        for number in given_back:
            self._taken.remove(number)
            heapq.heappush(self._untaken, number)
            self._free[number].sort(reverse=True)
        self._with_room = sorted(n for n in self._with_room if n in self._taken)
        self._listed = set(self._with_room)
        self._empty.clear()
        return [self._slabs[number] for number in given_back]

    def free_blocks(self) -> list[int]:
        return [block for blocks in self._free for block in blocks]

    def problems(self) -> list[str]:
        """Violations of one place per free block; empty when all is well."""
        found = []
        free = self.free_blocks()
        if len(free) != self.num_free or len(set(free)) != len(free):
            found.append("a block is free twice, or the count of free blocks is wrong")
        if any(block not in self._slabs[n] for n, blocks in enumerate(self._free) for block in blocks):
            found.append("a free block stands in another slab")
        whole = {n for n, slab in enumerate(self._slabs) if len(self._free[n]) == len(slab)}
        if self._is_elastic and self._empty != whole & self._taken:
            found.append("the empty slabs are not those without a used or cached block")
        if set(self._untaken) != set(range(len(self._slabs))) - self._taken or set(self._untaken) - whole:
            found.append("a slab holds blocks but its memory is not taken")
        return found

    def _lowest_with_room(self) -> int:
        while self._with_room:
            if self._free[self._with_room[0]]:
                return self._with_room[0]
            self._listed.remove(heapq.heappop(self._with_room))
        number = heapq.heappop(self._untaken)
        self._taken.add(number)
        self._listed.add(number)
        self._with_room.append(number)
        return number
