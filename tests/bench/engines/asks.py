"""What is asked of an engine, in both forms that doors take: token ids, and segments of text that become these ids.

Knows the model's tokenizer and template. The words of a prompt are drawn from a seeded source, each of them one token
with the blank before it, so that text and ids say the same in every tokenizer that reads this model's file.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from inference.front.model_folder import read_model_folder
from inference.types import RAW, Segment

WORD = re.compile(r" [a-zA-Z]+")
# Looked for in every answer, and never found.
STOP = "<<<the bench ends here>>>"


@dataclass(frozen=True, slots=True)
class Ask:
    """One request. Its answer has exactly `max_tokens` tokens; a temperature of 0 is greedy."""

    ids: tuple[int, ...]
    segments: tuple[Segment, ...]
    max_tokens: int
    temperature: float = 0.0
    seed: int = 0
    conversation: str = ""


class Writer:
    """Makes prompts of exactly so many tokens."""

    def __init__(self, folder: Path) -> None:
        model = read_model_folder(folder, None)
        self._tokenizer, self._prompts = model.tokenizer, model.prompts
        texts = {token: self._tokenizer.decode([token]) for token in range(self._tokenizer.num_tokens)}
        self._words = sorted(
            text
            for token, text in texts.items()
            if WORD.fullmatch(text) and self._tokenizer.encode_plain(text) == [token]
        )
        self._num_first = len(self._ids([Segment(RAW, self._words[0])])) - 1

    def words(self, num: int, chance: random.Random) -> str:
        return "".join(chance.choices(self._words, k=num))

    def plain(self, num_tokens: int, chance: random.Random, shared: str = "") -> tuple[Segment, ...]:
        """A whole prompt without a template; `shared` is how it begins."""
        num_shared = len(WORD.findall(shared))
        return (Segment(RAW, shared + self.words(num_tokens - self._num_first - num_shared, chance)),)

    def turn(
        self, history: Sequence[Segment], num_known: int, num_tokens: int, chance: random.Random
    ) -> tuple[Segment, ...]:
        """The history and a question, which together have `num_tokens` more than the `num_known` of the history."""
        least = len(self._ids([*history, Segment("user", self._words[0])])) - num_known
        num_words = max(1, num_tokens - least + 1)
        return (*history, Segment("user", self.words(num_words, chance)))

    def answered(self, history: Sequence[Segment], ids: Sequence[int], text: str) -> tuple[Segment, ...]:
        """The history with its answer. Where the door gave ids they are the authority on what was said."""
        said = self._tokenizer.decode(ids) if ids else text
        return (*history, Segment("assistant", said, tuple(ids), self._tokenizer.fingerprint))

    def ask(
        self,
        segments: Sequence[Segment],
        max_tokens: int,
        *,
        temperature: float = 0.0,
        seed: int = 0,
        conversation: str = "",
    ) -> Ask:
        ids = tuple(self._ids(segments))
        return Ask(ids, tuple(segments), max_tokens, temperature, seed, conversation)

    def _ids(self, segments: Sequence[Segment]) -> list[int]:
        return self._prompts.build(segments).ids
