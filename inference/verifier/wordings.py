"""Pairs out of groups written by hand: free rewordings of one question, and questions that only look like it.

Knows the form of `texts/free_*.txt`. Does not know the generator, whose pairs are many but narrow: its paraphrases are
the forms of a frame, people's are not.
"""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass
from functools import cache
from itertools import combinations, product

from inference.verifier.frames import TEXTS, paragraphs
from inference.verifier.generate import Pair
from inference.verifier.noise import roughen

KIND = "free"
_TRAP = "! "
_HELD_OUT_EVERY = 7


@dataclass(frozen=True, slots=True)
class Group:
    """`wordings` ask the same; each of `traps` asks something else than all of them."""

    language: str
    wordings: tuple[str, ...]
    traps: tuple[str, ...]

    @property
    def is_held_out(self) -> bool:
        return hashlib.sha256(self.wordings[0].encode()).digest()[0] % _HELD_OUT_EVERY == 0


@cache
def read_groups(language: str) -> tuple[Group, ...]:
    groups = []
    for lines in paragraphs(TEXTS / f"free_{language}.txt"):
        traps = tuple(line.removeprefix(_TRAP) for line in lines if line.startswith(_TRAP))
        groups.append(Group(language, tuple(line for line in lines if not line.startswith(_TRAP)), traps))
    return tuple(groups)


def wordings(language: str, num_copies: int, seed: int, *, held_out: bool = False) -> list[Pair]:
    """All paraphrases, and as many traps, drawn evenly from the groups; each copy is dressed anew."""
    rng = random.Random(f"{seed} {language}")  # noqa: S311
    pairs: list[Pair] = []
    for group in read_groups(language):
        if group.is_held_out != held_out:
            continue
        for _ in range(num_copies):
            same = list(combinations(group.wordings, 2))
            apart = list(product(group.wordings, group.traps))
            pairs.extend(_pair(texts, True, group, rng) for texts in same)
            pairs.extend(
                _pair(texts, False, group, rng) for texts in rng.sample(apart, min(len(same), len(apart)))
            )
    return pairs


def _pair(texts: tuple[str, str], same: bool, group: Group, rng: random.Random) -> Pair:
    first, second = (roughen(text, group.language, rng) for text in rng.sample(texts, 2))
    return Pair(first, second, same, KIND, f"{group.language}:{KIND}")
