"""The one order of all that wait: by latency class, then fair shares between users, then the policy.

Joins the three; knows nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable

from inference.core.classes import Classes
from inference.core.fairness import FairShares
from inference.core.policy import Policy
from inference.core.sequence import Sequence


def in_order(
    waiting: Iterable[Sequence], classes: Classes, shares: FairShares | None, policy: Policy, now: float
) -> list[Sequence]:
    """First to start first. Who was preempted has had its turn: it goes on before others of its class start."""
    groups: dict[tuple[bool, int, bool], list[Sequence]] = {}
    for sequence in waiting:
        has_started = sequence.prompt_done > 0
        group = (not classes.is_promoted(sequence), classes.of(sequence), not has_started)
        groups.setdefault(group, []).append(sequence)
    ordered: list[Sequence] = []
    for (*_, is_new), members in sorted(groups.items(), key=lambda item: item[0]):
        if not is_new:
            ordered += sorted(members, key=classes.place)
        elif shares is not None:
            ordered += shares.order(members, policy, now)
        else:
            ordered += policy.order(members, now)
    return ordered
