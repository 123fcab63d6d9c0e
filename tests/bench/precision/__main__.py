"""Measures each precision of a model and writes docs/engine/precision.md: `make bench-precision`."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from inference import settings
from inference.config import EngineConfig
from inference.models.errors import ModelNotUsable
from inference.models.loader import LoadedModel, load_served
from inference.models.resolve import resolve
from tests.bench.host import commit, is_quiet, processor, vector_units
from tests.bench.precision.quality import Answered, answered, compare, prompts
from tests.bench.precision.report import Row, broken_limits, table, write
from tests.bench.precision.served import QUICK, Sizes, served

DOCS = Path(__file__).resolve().parents[3] / "docs"
PAGE, FIGURES = DOCS / "engine" / "precision.md", DOCS / "pictures" / "precision.json"
PICTURE = DOCS / "pictures" / "precision.svg"
# Name, ENGINE_DTYPE, ENGINE_WEIGHTS. The first is what the others are compared with.
PRECISIONS = (
    ("fp32", "fp32", "same"),
    ("bf16", "bf16", "same"),
    ("int8", "bf16", "int8"),
    ("w8a8", "bf16", "w8a8"),
)


def main(arguments: list[str] | None = None) -> int:
    """Returns 1 where memory or cold start is over its limit."""
    options = _options(arguments)
    folder = options.model or resolve(EngineConfig().model, settings.read(EngineConfig).data_dir)
    if not is_quiet():
        print("the machine is busy: these numbers are worth little", file=sys.stderr)
    sizes = QUICK if options.quick else Sizes()
    exact = load_served(folder, "fp32", "cpu")
    answers = answered(exact, prompts(folder, sizes.prompts), sizes.answers)
    rows = []
    for name, dtype, weights in PRECISIONS:
        try:
            row = _row(folder, exact, answers, (name, dtype, weights), sizes)
        except ModelNotUsable as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
            continue
        rows.append(row)
    machine = f"{processor()}, {vector_units()}, {len(os.sched_getaffinity(0))} threads, at {commit()}"
    print(table(rows, machine))
    if not options.quick:
        write(rows, machine, options.page, options.json, options.picture)
    over = broken_limits(rows)
    print("\n".join(over), file=sys.stderr)
    return 1 if over and not options.quick else 0


def _row(
    folder: Path, exact: LoadedModel, answers: list[Answered], precision: tuple[str, str, str], sizes: Sizes
) -> Row:
    name, dtype, weights = precision
    model = load_served(folder, dtype, "cpu", "auto", weights)
    quality, weight_bytes = compare(exact, model, answers), model.weight_bytes
    del model
    return Row(name, weight_bytes, quality, served(folder, dtype, weights, sizes))


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.precision", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small numbers, and nothing is written")
    parser.add_argument("--model", type=Path, default=None, help="a folder; the trial model")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page that gets the table")
    parser.add_argument("--json", type=Path, default=FIGURES, help="the file that gets all figures")
    parser.add_argument("--picture", type=Path, default=PICTURE, help="the file that gets the picture")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
