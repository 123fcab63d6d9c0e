"""Scores of files of pairs, and how good they are where the files say what is right.

Knows the rows of JSON-lines files: `first` and `second` (or `a` and `b`), and a label in `same`, `same_answer` or
`label`. Writes lines of `first`, `second` and `score`, in the order of the rows; scores are those of the engine.

    python -m inference.verifier.evaluate FOLDER pairs.jsonl [more.jsonl] --out scores.jsonl
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from inference.models.errors import ModelError
from inference.offline.scores import score
from inference.verifier.figures import Figures
from inference.verifier.ship import table

_TRUE = (True, 1, "1", "paraphrase", "same")

Score = Callable[[Sequence[tuple[str, str]]], np.ndarray]


class RowError(Exception):
    """A line is no pair; the text says which."""


@dataclass(frozen=True, slots=True)
class Row:
    first: str
    second: str
    same: bool | None  # None: the file does not say


def read_rows(file: Path) -> list[Row]:
    """Raises RowError."""
    lines = file.read_text(encoding="utf-8").splitlines()
    return [_row(line, f"{file}:{number}") for number, line in enumerate(lines, 1) if line.strip()]


def evaluate(files: Sequence[Path], out: Path, score_pairs: Score) -> dict[str, Figures]:
    """Figures by file name, of the files whose every row has a label and that hold both labels. Raises RowError."""
    rows = {file.name: read_rows(file) for file in files}
    found: dict[str, Figures] = {}
    with out.open("w", encoding="utf-8") as lines:
        for name, pairs in rows.items():
            scores = score_pairs([(row.first, row.second) for row in pairs])
            for row, value in zip(pairs, scores.tolist(), strict=True):
                line = {"first": row.first, "second": row.second, "score": round(value, 6)}
                lines.write(json.dumps(line, ensure_ascii=False) + "\n")
            labels = [row.same for row in pairs if row.same is not None]
            if len(labels) == len(pairs) and len(set(labels)) == 2:
                found[name] = Figures.of(scores, labels)
    return found


def _row(line: str, place: str) -> Row:
    try:
        fields = json.loads(line)
        first, second = (
            (fields["first"], fields["second"]) if "first" in fields else (fields["a"], fields["b"])
        )
    except (ValueError, KeyError, TypeError):
        raise RowError(f"{place}: no pair of texts") from None
    if not isinstance(first, str) or not isinstance(second, str):
        raise RowError(f"{place}: no pair of texts")
    labels = [fields[name] for name in ("same", "same_answer", "label") if name in fields]
    return Row(first, second, labels[0] in _TRUE if labels else None)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m inference.verifier.evaluate", description=__doc__)
    parser.add_argument("verifier", type=Path, metavar="FOLDER")
    parser.add_argument("pairs", type=Path, nargs="+")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    try:
        figures = evaluate(options.pairs, options.out, lambda pairs: score(options.verifier, pairs))
    except (ModelError, RowError, OSError) as error:
        print(f"evaluate: error: {error}", file=sys.stderr)
        return 1
    if figures:
        print(table(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
