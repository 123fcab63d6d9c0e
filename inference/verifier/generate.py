"""Minimal pairs of questions, English and Chinese: traps that differ in one meaning, paraphrases that differ in none.

Knows how a frame and its values become two texts and a label. Does not know other data (`mix`). The same seed gives
the same pairs. Traps and paraphrases are dressed alike (other forms, politeness, slips), so that nothing but the
meaning tells them apart.

    python -m inference.verifier.generate --pairs 2000 --seed 0 --out pairs.jsonl
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from inference.verifier.frames import LANGUAGES, Frame, read_frames, vocabulary_of
from inference.verifier.noise import capitalised, roughen, slip

ROLE, QUESTION = "role", "question"
SLOT_KINDS = (
    "negation", "number", "name", "place", "unit", "date", "direction", "language", "quantifier", "scope", "topic",
)  # fmt: skip
KINDS = (*SLOT_KINDS, ROLE, QUESTION)
_SLIP_CHANCE = 0.12
_SAME_FORM_CHANCE = {True: 0.25, False: 0.5}
_ELSEWHERE_CHANCE = 0.2  # of a question trap: another group's question about the same thing
_MAX_TRIES = 50

Values = dict[str, int]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two questions; `same` says whether one answer serves both."""

    first: str
    second: str
    same: bool
    kind: str
    source: str  # language and frame, or the data set


@dataclass(frozen=True, slots=True)
class _Question:
    frame: Frame
    values: Values


def generate(num_pairs: int, seed: int, held_out: bool = False) -> list[Pair]:
    """As many traps as paraphrases of every kind and language; frames are those held out from training, or the rest."""
    rng = random.Random(seed)  # noqa: S311
    books = {language: _Book(language, held_out) for language in LANGUAGES}
    pairs: list[Pair] = []
    labels: dict[frozenset[str], bool] = {}
    turn = 0
    while len(pairs) < num_pairs:
        language, same = LANGUAGES[turn % 2], turn // 2 % 2 == 0
        kind = KINDS[turn // 4 % len(KINDS)]
        turn += 1
        if not books[language].frames_of(kind):
            continue
        for _ in range(_MAX_TRIES):
            pair = _pair(books[language], kind, same, rng)
            if pair is not None and frozenset((pair.first, pair.second)) not in labels:
                labels[frozenset((pair.first, pair.second))] = same
                pairs.append(pair)
                break
    return pairs


def folded(text: str) -> str:
    """What is left when case, marks and spaces are taken away; C++ and C# stay two."""
    return re.sub(r"[^\w+#]|_", "", text).casefold()


class _Book:
    """The frames of one language, by the kinds of traps that they allow."""

    def __init__(self, language: str, held_out: bool) -> None:
        self.frames = [frame for frame in read_frames(language) if frame.is_held_out == held_out]
        self._by_kind: dict[str, list[Frame]] = defaultdict(list)
        for frame in self.frames:
            kinds = {vocabulary_of(slot, language).kind for slot in frame.slots}
            if any(slot + "2" in frame.slots for slot in frame.slots):
                kinds.add(ROLE)
            if self.siblings(frame):
                kinds.add(QUESTION)
            for kind in kinds:
                self._by_kind[kind].append(frame)

    def frames_of(self, kind: str) -> list[Frame]:
        return self._by_kind[kind]

    def siblings(self, frame: Frame) -> list[Frame]:
        """Other questions of the group with a slot in common."""
        others = (other for other in self.frames if other.group == frame.group and other is not frame)
        return [other for other in others if set(other.slots) & set(frame.slots)]

    def strangers(self, frame: Frame) -> list[Frame]:
        others = (other for other in self.frames if other.group != frame.group)
        return [other for other in others if set(other.slots) & set(frame.slots)]


def _pair(book: _Book, kind: str, same: bool, rng: random.Random) -> Pair | None:
    """None where the dice gave two texts that are no pair."""
    frame = rng.choice(book.frames_of(kind))
    question = _Question(frame, _draw(frame, {}, rng))
    other = _paraphrased(question, rng) if same else _contrasted(question, kind, book, rng)
    if other is None:
        return None
    form = rng.choice(frame.forms)
    keeps_form = other.frame is frame and rng.random() < _SAME_FORM_CHANCE[same]
    other_form = form if keeps_form else rng.choice(other.frame.forms)
    first, second = _write(question, form, rng), _write(other, other_form, rng)
    if first == second or (not same and folded(first) == folded(second)):
        return None
    if rng.random() < 0.5:
        first, second = second, first
    return Pair(first, second, same, kind, f"{frame.language}:{frame.name}")


def _draw(frame: Frame, known: Values, rng: random.Random) -> Values:
    """Two slots of one vocabulary never hold the same value."""
    values = {slot: known[slot] for slot in frame.slots if slot in known}
    for slot in frame.slots:
        if slot in values:
            continue
        vocabulary, twin = vocabulary_of(slot, frame.language), _twin(slot)
        number = vocabulary.draw(rng)
        values[slot] = vocabulary.other(number, rng) if values.get(twin) == number else number
    return values


def _paraphrased(question: _Question, rng: random.Random) -> _Question:
    if question.frame.is_symmetric and rng.random() < 0.5:
        return _Question(question.frame, _swapped(question.values))
    return question


def _contrasted(question: _Question, kind: str, book: _Book, rng: random.Random) -> _Question | None:
    frame, values = question.frame, question.values
    if kind == ROLE:
        return None if frame.is_symmetric else _Question(frame, _swapped(values))
    if kind == QUESTION:
        strangers = book.strangers(frame) if rng.random() < _ELSEWHERE_CHANCE else []
        other = rng.choice(strangers or book.siblings(frame))
        return _Question(other, _draw(other, values, rng))
    slot = rng.choice([slot for slot in frame.slots if vocabulary_of(slot, frame.language).kind == kind])
    number = vocabulary_of(slot, frame.language).other(values[slot], rng)
    if values.get(_twin(slot)) == number:
        return None
    return _Question(frame, values | {slot: number})


def _swapped(values: Values) -> Values:
    return {slot: values.get(_twin(slot), number) for slot, number in values.items()}


def _twin(slot: str) -> str:
    return slot.removesuffix("2") if slot.endswith("2") else slot + "2"


def _write(question: _Question, form: str, rng: random.Random) -> str:
    language = question.frame.language
    text = slip(form, rng) if rng.random() < _SLIP_CHANCE else form
    for slot, number in question.values.items():
        spellings = vocabulary_of(slot, language).meaning(number).spellings
        text = text.replace(f"{{{slot}}}", rng.choice(spellings))
    return roughen(capitalised(text), language, rng)


def write_pairs(pairs: Sequence[Pair], file: Path) -> None:
    lines = (json.dumps(asdict(pair), ensure_ascii=False) + "\n" for pair in pairs)
    file.write_text("".join(lines), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m inference.verifier.generate", description=__doc__)
    parser.add_argument("--pairs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--held-out", action="store_true", help="of the frames that are never trained on")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    pairs = generate(options.pairs, options.seed, options.held_out)
    write_pairs(pairs, options.out)
    for (kind, same), num in sorted(Counter((pair.kind, pair.same) for pair in pairs).items()):
        print(f"{kind:12} {'same' if same else 'trap'} {num:6}")


if __name__ == "__main__":
    main()
