"""`python -m inference.offline.vectors OUT.npy`: the sentence encoder alone, without an engine and without a model.

Reads a JSON list of texts from its input and writes their vectors, (num_texts, dim) float32 of length 1, to OUT. It is
the same encoder, prefix and tokenizer as in the engine's embedding lane. For evaluations, which embed much at once.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from inference import settings
from inference.config import EngineConfig
from inference.front.encoder_tokenizer import read_embed_ids
from inference.models.embedder import load_embedder
from inference.models.lean_layers import make_lean
from inference.models.resolve import resolve

BATCH = 64


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m inference.offline.vectors", description=__doc__)
    parser.add_argument("out", type=Path, metavar="OUT.npy")
    settings.add_flags(parser, EngineConfig)
    options = vars(parser.parse_args(arguments))
    out = options.pop("out")
    config = settings.read(EngineConfig, **options)
    folder = resolve(config.embed_model, config.data_dir, say=lambda line: print(line, file=sys.stderr))
    save(out, embed(folder, json.load(sys.stdin), config.dtype))
    return 0


def embed(folder: Path, texts: Sequence[str], dtype: str = "auto") -> np.ndarray:
    """The vectors in the order of the texts."""
    embedder = load_embedder(folder, dtype)
    make_lean(embedder.model)
    ids = read_embed_ids(folder / "tokenizer.json")(texts, embedder.prefix, embedder.max_tokens)
    return in_batches(ids, embedder.embed_ids, np.empty((len(texts), embedder.dim), dtype=np.float32))


def in_batches(
    ids: Sequence[Sequence[int]], compute: Callable[[list[Sequence[int]]], np.ndarray], rows: np.ndarray
) -> np.ndarray:
    """`rows`, filled with what `compute` gives for each of `ids`; a like length shares a batch, so little is padded."""
    by_length = sorted(range(len(ids)), key=lambda place: len(ids[place]))
    for start in range(0, len(ids), BATCH):
        places = by_length[start : start + BATCH]
        rows[places] = compute([ids[place] for place in places])
    return rows


def save(out: Path, rows: np.ndarray) -> None:
    """Whoever finds `out` finds all of it."""
    unfinished = out.with_name(f"{out.name}.part")
    with unfinished.open("wb") as file:
        np.save(file, rows)
    unfinished.replace(out)


if __name__ == "__main__":
    sys.exit(main())
