"""The sentences that pairs are made of: frames with slots, and the vocabularies that fill them.

Knows the form of the files in `texts/`. Does not know how two sentences become a pair.
"""

from __future__ import annotations

import hashlib
import random
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from inference.verifier.values import QUANTITIES, Meaning

LANGUAGES = ("en", "zh")
SLOT = re.compile(r"\{([a-z_]+)(\d?)\}")
TEXTS = Path(__file__).parent / "texts"
_HELD_OUT = (
    7,
    6,
)  # the frames with this remainder are never trained on: one in seven, with all kinds among them


@dataclass(frozen=True, slots=True)
class Frame:
    """One question with several forms; every form has the same slots."""

    language: str
    name: str  # group/question
    forms: tuple[str, ...]
    is_symmetric: bool

    @property
    def group(self) -> str:
        return self.name.partition("/")[0]

    @property
    def slots(self) -> tuple[str, ...]:
        """Names with their digits, sorted: `place`, `place2`."""
        return tuple(sorted("".join(found) for found in SLOT.findall(self.forms[0])))

    @property
    def is_held_out(self) -> bool:
        """By the name alone, so that both languages of a frame are on the same side."""
        every, remainder = _HELD_OUT
        return hashlib.sha256(self.name.encode()).digest()[0] % every == remainder


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What may fill a slot. `number` of a value is its place in a list, or itself where values are made."""

    name: str
    kind: str
    language: str
    meanings: tuple[Meaning, ...]  # empty where they are made

    def draw(self, rng: random.Random) -> int:
        return rng.randrange(len(self.meanings)) if self.meanings else QUANTITIES[self.name].draw(rng)

    def other(self, number: int, rng: random.Random) -> int:
        """Another value, near where nearness means something."""
        if not self.meanings:
            return QUANTITIES[self.name].near(number, rng)
        return (number + rng.randrange(1, len(self.meanings))) % len(self.meanings)

    def meaning(self, number: int) -> Meaning:
        return (
            self.meanings[number] if self.meanings else QUANTITIES[self.name].meaning(number, self.language)
        )


def vocabulary_of(slot: str, language: str) -> Vocabulary:
    return read_vocabularies(language)[slot.rstrip("0123456789")]


@cache
def read_frames(language: str) -> tuple[Frame, ...]:
    frames = []
    for paragraph in paragraphs(TEXTS / f"frames_{language}.txt"):
        name, *forms = paragraph
        frames.append(Frame(language, name.removesuffix(" ~"), tuple(forms), name.endswith(" ~")))
    return tuple(frames)


@cache
def read_vocabularies(language: str) -> dict[str, Vocabulary]:
    vocabularies = {
        name: Vocabulary(name, quantity.kind, language, ()) for name, quantity in QUANTITIES.items()
    }
    for title, *lines in paragraphs(TEXTS / f"vocabulary_{language}.txt"):
        name, kind = title.removeprefix("[").split("] ")
        meanings = tuple(Meaning(kind, tuple(line.split(" = "))) for line in lines)
        vocabularies[name] = Vocabulary(name, kind, language, meanings)
    return vocabularies


def paragraphs(file: Path) -> list[list[str]]:
    """The file's paragraphs as lines, without comments."""
    lines = [line for line in file.read_text(encoding="utf-8").split("\n") if not line.startswith("#")]
    return [part.split("\n") for part in re.split(r"\n{2,}", "\n".join(lines).strip())]
