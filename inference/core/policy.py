"""In which order the waiting requests of one user, or of all where shares are not kept, are started.

Knows priorities, ages and how much of a prompt is cached. Who comes first between users is decided by `fairness`,
between classes by `classes`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from inference.core.kv_cache import KvCache
from inference.core.sequence import Sequence

# Looking a prompt up costs one hash per cached block: so many of the oldest are compared, the rest queue behind them.
MAX_LOOKUPS = 32


class Policy(Protocol):
    """An order of waiting sequences, first to start first."""

    def order(self, waiting: Iterable[Sequence], now: float) -> list[Sequence]: ...


class FirstCome:
    """By arrival."""

    def order(self, waiting: Iterable[Sequence], now: float) -> list[Sequence]:
        return sorted(waiting, key=_arrival)


class LongestPrefix:
    """The longest cached prefix first, so that it is used before it is evicted.

    Who has waited for `patience_s` is overtaken no more: an unlucky request is delayed by that, never starved.
    """

    def __init__(self, kv: KvCache, patience_s: float) -> None:
        self._kv = kv
        self._patience_s = patience_s

    def order(self, waiting: Iterable[Sequence], now: float) -> list[Sequence]:
        by_arrival = sorted(waiting, key=_arrival)
        num_due = sum(1 for sequence in by_arrival if now - sequence.arrived_at >= self._patience_s)
        due, rest = by_arrival[:num_due], by_arrival[num_due:]
        if len(rest) > 1:
            rest[:MAX_LOOKUPS] = sorted(rest[:MAX_LOOKUPS], key=self._kv.num_reusable, reverse=True)
        return due + rest


class AgeingPriority:
    """By priority, the lowest number first; every `ageing_s` of waiting counts as one level."""

    def __init__(self, ageing_s: float) -> None:
        self._ageing_s = ageing_s

    def order(self, waiting: Iterable[Sequence], now: float) -> list[Sequence]:
        def level(sequence: Sequence) -> tuple[int, int]:
            return sequence.admit.priority - int(
                (now - sequence.arrived_at) / self._ageing_s
            ), sequence.arrival

        return sorted(waiting, key=level)


def policy_of(name: str, kv: KvCache, ageing_s: float) -> Policy:
    """The policy that ENGINE_POLICY names."""
    match name:
        case "lpm":
            return LongestPrefix(kv, ageing_s)
        case "priority":
            return AgeingPriority(ageing_s)
        case _:
            return FirstCome()


def _arrival(sequence: Sequence) -> int:
    return sequence.arrival
