"""The labelled questions: what each set holds, from the packed files beside this module.

Knows files, rows and which half a threshold may be chosen on. Knows no vector and no guard.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
OUT_OF_SCOPE = "oos"
# A set without a half of its own to choose on takes the thresholds that were chosen on this one.
TUNED_ON = {"own": "fow"}


@dataclass(frozen=True, slots=True)
class Pair:
    """Two questions. `is_same`: the answer of one is right for the other; `kind` is what makes them alike or not."""

    first: str
    second: str
    is_same: bool
    kind: str


@dataclass(frozen=True, slots=True)
class Labelled:
    """A question and its intent; questions of one intent have one answer."""

    text: str
    intent: str


@dataclass(frozen=True, slots=True)
class Talks:
    """Two conversations that end in like questions; each is what was said in turn, the user's question last."""

    first: Sequence[str]
    second: Sequence[str]
    is_same: bool
    kind: str


def fow_pairs(half: str) -> list[Pair]:
    rows = _json_lines(f"fow_pairs_{half}.jsonl")
    return [Pair(row["a"], row["b"], row["same_answer"], row["category"]) for row in rows]


def paws_pairs(half: str) -> list[Pair]:
    rows = _table(f"pawsx_zh_{half}.tsv")
    return [
        Pair(first, second, label == "1", "same" if label == "1" else "scrambled")
        for first, second, label in rows
    ]


def own_pairs() -> list[Pair]:
    return [
        Pair(row["first"], row["second"], row["label"] == "paraphrase", f"{row['kind']} ({row['language']})")
        for language in ("en", "zh")
        for row in map(json.loads, _own_file(language).read_text(encoding="utf-8").splitlines())
    ]


def intents(name: str, half: str) -> list[Labelled]:
    return [Labelled(text, intent) for text, intent in _table(f"{name}_{half}.tsv")]


def conversations(half: str) -> list[Talks]:
    return [
        Talks(
            first=[message["content"] for message in row["a"]],
            second=[message["content"] for message in row["b"]],
            is_same=row["same_answer"],
            kind=row["subtype"],
        )
        for row in _json_lines(f"fow_conversations_{half}.jsonl")
    ]


def _own_file(language: str) -> Path:
    return FOLDER / f"own_pairs_{language}.jsonl"


def _json_lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in _lines(name)]


def _table(name: str) -> list[list[str]]:
    return [line.split("\t") for line in _lines(name)]


def _lines(name: str) -> list[str]:
    packed = (FOLDER / "data" / f"{name}.xz").read_bytes()
    return lzma.decompress(packed).decode("utf-8").rstrip("\n").split("\n")
