"""In which order cached blocks are given up.

A class follows from two facts: what holds the block (`Hold`) and when it was last used. Lower classes go first;
inside a class the least recently used goes first. Callers add the blocks of a chain from its tail to its head, so
the leaf always goes before its parent. Every operation is O(1): blocks stand in queues that are ordered by last
use, and time moves them from queue to queue from the front, at most twice per use. Knows numbers and times only.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from enum import Enum, IntEnum, auto


class Retention(IntEnum):
    """Classes of cached blocks, first out first."""

    CLOSED = 0
    SUPERSEDED = 1
    STALE = 2
    IDLE = 3
    ACTIVE = 4
    SHARED = 5


class Hold(Enum):
    """The best of what holds a block."""

    CLOSED = auto()  # only forgotten conversations, which still have a sequence here
    SUPERSEDED = auto()  # only branches that their conversation has left
    CONTENT = auto()  # requests without a conversation: found by content alone
    HEAD = auto()  # the newest head of a conversation
    SHARED = auto()  # the operator


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """Seconds since the last use."""

    active_s: float = 120.0  # what the newest head holds is active until then
    soft_ttl_s: float = 1800.0  # idle until then, stale after


_Queue = OrderedDict[int, float]  # block -> when it was last used, ascending


class EvictionOrder:
    """The cached blocks of a pool."""

    def __init__(self, lifetimes: Lifetimes) -> None:
        self._lifetimes = lifetimes
        self._now = 0.0
        self._closed: _Queue = OrderedDict()
        self._superseded: _Queue = OrderedDict()
        self._stale: _Queue = OrderedDict()
        # Two queues for one class: heads come in when they stop being active, the others when they are released,
        # and a queue must stay ordered by last use.
        self._idle_content: _Queue = OrderedDict()
        self._idle_heads: _Queue = OrderedDict()
        self._active: _Queue = OrderedDict()
        self._shared: _Queue = OrderedDict()
        self._entry = {
            Hold.CLOSED: self._closed,
            Hold.SUPERSEDED: self._superseded,
            Hold.CONTENT: self._idle_content,
            Hold.HEAD: self._active,
            Hold.SHARED: self._shared,
        }
        self._places: dict[int, tuple[Hold, _Queue]] = {}

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, block: int) -> bool:
        return block in self._places

    def blocks(self) -> list[int]:
        return list(self._places)

    def counts(self) -> dict[Retention, int]:
        return {
            Retention.CLOSED: len(self._closed),
            Retention.SUPERSEDED: len(self._superseded),
            Retention.STALE: len(self._stale),
            Retention.IDLE: len(self._idle_content) + len(self._idle_heads),
            Retention.ACTIVE: len(self._active),
            Retention.SHARED: len(self._shared),
        }

    def hold(self, block: int) -> Hold:
        return self._places[block][0]

    def add(self, block: int, hold: Hold) -> None:
        """The block was used just now and nobody uses it any more."""
        queue = self._entry[hold]
        queue[block] = self._now
        self._places[block] = (hold, queue)

    def remove(self, block: int) -> None:
        _, queue = self._places.pop(block)
        del queue[block]

    def move(self, block: int, hold: Hold) -> None:
        """Something else holds the block now."""
        if self.hold(block) is not hold:
            self.remove(block)
            self.add(block, hold)

    def age(self, now: float) -> None:
        """It is `now`: what was not used for long enough changes its class."""
        self._now = max(now, self._now)
        while self._active and self._oldest(self._active) + self._lifetimes.active_s <= now:
            self._pass_on(self._active, self._idle_heads)
        while (idle := self._older_idle()) and self._oldest(idle) + self._lifetimes.soft_ttl_s <= now:
            self._pass_on(idle, self._stale)

    def pop(self) -> tuple[int, Retention]:
        """The block to give up next. There must be one."""
        for queue, retention in (
            (self._closed, Retention.CLOSED),
            (self._superseded, Retention.SUPERSEDED),
            (self._stale, Retention.STALE),
            (self._older_idle(), Retention.IDLE),
            (self._active, Retention.ACTIVE),
            (self._shared, Retention.SHARED),
        ):
            if queue:
                block, _ = queue.popitem(last=False)
                del self._places[block]
                return block, retention
        raise AssertionError("nothing is cached")

    def problems(self) -> list[str]:
        """Violations of one place per block and of the order by last use; empty when all is well."""
        queues = [*self._entry.values(), self._idle_heads, self._stale]
        found = []
        if sum(map(len, queues)) != len(self._places):
            found.append("a cached block stands in two classes or in none")
        for queue in queues:
            times = list(queue.values())
            if times != sorted(times):
                found.append("a class is not ordered by last use")
        return found

    # --- details

    def _older_idle(self) -> _Queue:
        """The idle queue whose first block was used longest ago; of equals the one that can hold leaves only."""
        if not self._idle_content or not self._idle_heads:
            return self._idle_content or self._idle_heads
        is_older = self._oldest(self._idle_heads) < self._oldest(self._idle_content)
        return self._idle_heads if is_older else self._idle_content

    def _oldest(self, queue: _Queue) -> float:
        return next(iter(queue.values()))

    def _pass_on(self, source: _Queue, target: _Queue) -> None:
        block, used_at = source.popitem(last=False)
        target[block] = used_at
        self._places[block] = (self._places[block][0], target)
