"""Whether a stored answer and one that the model has just made are the same answer: the one check for the budget, which
samples, and for staff, who look at both.

A proxy (`semcache.text.comparison`): a verifier scores the first sentences where there is one, else the words decide.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from semcache.decision import NoVerifier, Verify
from semcache.text.comparison import first_sentence, says_otherwise

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Sameness:
    """`score` is the verifier's, None where it gave none."""

    is_same: bool
    score: float | None


async def compared(stored: str, made: str, verify: Verify | None) -> Sameness:
    """Never fails: without the verifier's word the words decide."""
    score = await _score(first_sentence(stored), first_sentence(made), verify)
    return Sameness(not says_otherwise(stored, made, score), score)


async def _score(one: str, other: str, verify: Verify | None) -> float | None:
    if verify is None:
        return None
    try:
        (score,) = await verify([(one, other)])
    except (NoVerifier, OSError) as error:
        logger.debug("two answers were compared by their words: %s", error)
        return None
    return score
