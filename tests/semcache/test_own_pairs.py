"""The project's own test set is what its page says, and stays as it was written."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "semcache" / "evaluation"
FROZEN = {
    "en": "54279005c06a17afbde90f7a31f4bea1ef3ab1e3063a906f2c1bd57f2ff3ef83",
    "zh": "50f4893ba86e44038c1541fd319e272eee4153284251a65dbfd5ba8923e6cd1f",
}
TRAPS = {"negation", "number", "name", "place", "unit", "date", "direction", "language"}
PARAPHRASES = {
    "word_order", "synonyms", "politeness", "question_imperative", "contraction_abbreviation", "number_format",
    "typo_case", "short_long",
}  # fmt: skip


def file_of(language: str) -> Path:
    return FOLDER / f"own_pairs_{language}.jsonl"


def rows_of(language: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in file_of(language).read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("language", FROZEN)
def test_the_rows_are_frozen(language: str) -> None:
    assert hashlib.sha256(file_of(language).read_bytes()).hexdigest() == FROZEN[language]


@pytest.mark.parametrize("language", FROZEN)
def test_traps_and_paraphrases_are_balanced_by_kind(language: str) -> None:
    rows = rows_of(language)
    kinds = {
        label: Counter(row["kind"] for row in rows if row["label"] == label)
        for label in ("trap", "paraphrase")
    }
    assert {label: sum(counts.values()) for label, counts in kinds.items()} == {
        "trap": 150,
        "paraphrase": 150,
    }
    assert kinds["trap"].keys() == TRAPS
    assert kinds["paraphrase"].keys() == PARAPHRASES
    assert all(count in (18, 19) for counts in kinds.values() for count in counts.values())


@pytest.mark.parametrize("language", FROZEN)
def test_no_sentence_stands_twice(language: str) -> None:
    sentences = [row[side] for row in rows_of(language) for side in ("first", "second")]
    assert len(sentences) == len(set(sentences)) == 600
    assert {row["language"] for row in rows_of(language)} == {language}
