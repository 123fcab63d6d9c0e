"""What a forward made of one chunk of a sequence. Knows values only: neither tensors nor sequences."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Outcome:
    """The next token; none after a chunk that does not end at the newest token; or `error` for broken numbers.

    Where a draft was right, `more` are the outcomes behind its guesses, one by one: each as if it had had a step of
    its own.
    """

    token: int | None = None
    logprob: float = 0.0
    top: tuple[tuple[int, float], ...] = ()
    error: str = ""
    more: tuple[Outcome, ...] = ()
