"""What is trained on and what is held out: generated and hand-written pairs, open pairs, and questions with intents.

Knows shares and splits. Does not know files (`sources`) or the encoder: neighbours are found with a given `embed`.
No text is on both sides. Pairs of intents are weak: two questions with one intent are taken for the same only where
their numbers agree and the intent has no slots of its own.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from inference.verifier.frames import LANGUAGES
from inference.verifier.generate import Pair, folded, generate
from inference.verifier.sources import read_intents, read_pairs
from inference.verifier.wordings import wordings

Embed = Callable[[Sequence[str]], np.ndarray]  # unit vectors, (num_texts, dim)

_PLAIN_INTENTS = Path(__file__).parent / "texts" / "plain_intents.txt"
_NUMBER = re.compile(r"\d+")
_FOW_COPIES = 4  # few, and the only ones that people wrote as traps
_HELD_OUT = 0.15  # of intents, and of PAWS-X
_CROWD = 8  # a hard neighbour is looked for among so many texts for each that is needed


@dataclass(frozen=True, slots=True)
class Shares:
    """How many pairs each part gives at most; fow and PAWS-X are small and taken whole."""

    generated: int
    copies: int  # of the groups written by hand
    intents: int
    statements: int
    held_out: int

    @classmethod
    def of(cls, generated: int) -> Shares:
        return cls(
            generated=generated,
            copies=max(1, generated // 2_500),
            intents=generated // 3,
            statements=generated // 20,
            held_out=min(600, generated // 4),
        )


@dataclass(frozen=True, slots=True)
class Mix:
    train: list[Pair]
    dev: dict[str, list[Pair]]  # by part


def mix(folders: Sequence[Path], embed: Embed, seed: int, shares: Shares) -> Mix:
    """The same for the same seed, files and vectors. Raises SourceError."""
    rng = random.Random(seed)  # noqa: S311
    fow_train, fow_dev = _by_text(read_pairs("fow_pairs_dev.jsonl", folders), 0.5)
    paws_train, paws_dev = _by_text(read_pairs("pawsx_zh_train.tsv", folders), _HELD_OUT)
    intents_train, intents_dev = _intents(folders, embed, rng, shares)
    train = [
        *generate(shares.generated, seed),
        *(pair for language in LANGUAGES for pair in wordings(language, shares.copies, seed)),
        *_FOW_COPIES * fow_train,
        *paws_train,
        *intents_train,
        *_statements(folders, embed, rng, shares.statements),
    ]
    dev = {"fow": fow_dev, "intents": intents_dev, "pawsx": paws_dev}
    generated = generate(shares.held_out, seed, held_out=True)
    for language in LANGUAGES:
        dev[f"free_{language}"] = wordings(language, 1, seed, held_out=True)
        dev[f"generated_{language}"] = [pair for pair in generated if pair.source.startswith(f"{language}:")]
    return Mix(_without_noise(train, dev), dev)


def _without_noise(train: Sequence[Pair], dev: Mapping[str, Sequence[Pair]]) -> list[Pair]:
    """Neither pairs with a text that is held out, nor traps that are one text twice, nor pairs with both labels."""
    held_out = {
        folded(text) for pairs in dev.values() for pair in pairs for text in (pair.first, pair.second)
    }
    labels: dict[frozenset[str], set[bool]] = defaultdict(set)
    for pair in train:
        labels[_key(pair)].add(pair.same)
    return [
        pair
        for pair in train
        if len(labels[_key(pair)]) == 1 and not _key(pair) & held_out and (pair.same or len(_key(pair)) == 2)
    ]


def _key(pair: Pair) -> frozenset[str]:
    return frozenset((folded(pair.first), folded(pair.second)))


def _by_text(pairs: Sequence[Pair], share: float) -> tuple[list[Pair], list[Pair]]:
    """Training and held-out pairs without a text in common: pairs that share one, in however many steps, stay
    together."""
    owner: dict[str, str] = {}

    def root(text: str) -> str:
        while owner.setdefault(text, text) != text:
            text = owner[text]
        return text

    for pair in pairs:
        owner[root(folded(pair.first))] = root(folded(pair.second))
    sides: tuple[list[Pair], list[Pair]] = ([], [])
    for pair in pairs:
        sides[_is_held_out(root(folded(pair.first)), share)].append(pair)
    return sides


def _is_held_out(name: str, share: float) -> bool:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4]) < share * 2**32


def _intents(
    folders: Sequence[Path], embed: Embed, rng: random.Random, shares: Shares
) -> tuple[list[Pair], list[Pair]]:
    sides: tuple[list[Pair], list[Pair]] = ([], [])
    plain_intents = set(_PLAIN_INTENTS.read_text(encoding="utf-8").split("\n")[1:])
    for name in ("banking77_train.tsv", "clinc150_train.tsv"):
        rows = [(text, intent) for text, intent in read_intents(name, folders) if intent != "oos"]
        for held_out, num in ((False, shares.intents // 2), (True, shares.held_out // 4)):
            side = [row for row in rows if _is_held_out(row[1], _HELD_OUT) == held_out]
            plain = [row for row in side if name.startswith("banking") or row[1] in plain_intents]
            sides[held_out].extend(_same_intent(plain, num // 2, name, rng))
            crowd = rng.sample(side, min(len(side), _CROWD * (num // 2)))
            sides[held_out].extend(_other_intent(crowd, embed, num // 2, name))
    return sides


def _same_intent(rows: Sequence[tuple[str, str]], num: int, name: str, rng: random.Random) -> list[Pair]:
    texts: dict[str, list[str]] = defaultdict(list)
    for text, intent in rows:
        texts[intent].append(text)
    pairs = []
    for _ in range(num):
        first, second = rng.sample(texts[rng.choice(sorted(texts))], 2)
        if folded(first) != folded(second) and _NUMBER.findall(first) == _NUMBER.findall(second):
            pairs.append(Pair(first, second, True, "intent", name))
    return pairs


def _other_intent(rows: Sequence[tuple[str, str]], embed: Embed, num: int, name: str) -> list[Pair]:
    """The hardest there are: each text beside the nearest one of another intent."""
    texts, intents = [text for text, _ in rows], np.array([intent for _, intent in rows])
    asked = range(min(num, len(rows)))  # the rows come shuffled
    nearest = _nearest(embed(texts), asked, lambda row: intents == intents[row])
    return [
        Pair(texts[row], texts[other], False, "intent", name)
        for row, other in zip(asked, nearest, strict=True)
    ]


def _statements(folders: Sequence[Path], embed: Embed, rng: random.Random, num: int) -> list[Pair]:
    """GPTCache's paraphrases, and each first text beside its nearest neighbour, which says something else."""
    pairs = read_pairs("gptcache_mock.jsonl", folders)
    chosen = rng.sample(pairs, min(len(pairs), num // 2))
    texts = sorted({pair.first for pair in chosen})
    nearest = _nearest(embed(texts), range(len(texts)), lambda row: np.arange(len(texts)) == row)
    others = zip(texts, nearest, strict=True)
    return chosen + [replace(pairs[0], first=text, second=texts[other], same=False) for text, other in others]


def _nearest(vectors: np.ndarray, rows: Sequence[int], excluded: Callable[[int], np.ndarray]) -> list[int]:
    found = []
    for row in rows:
        similarity = vectors @ vectors[row]
        similarity[excluded(row)] = -2
        found.append(int(similarity.argmax()))
    return found
