"""In which order sequences are served.

A policy is a key function over sequences: the smallest key is served first, the largest is preempted first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from inference.core.sequence import Sequence

Policy: TypeAlias = Callable[[Sequence], tuple[int, ...]]


def first_come(sequence: Sequence) -> tuple[int, ...]:
    """People before background work, then by priority, then by arrival."""
    return (int(sequence.is_background), sequence.admit.priority, sequence.arrival)
