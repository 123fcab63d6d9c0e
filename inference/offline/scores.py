"""`python -m inference.offline.scores FOLDER OUT.npy`: a cross-encoder alone, without an engine and without a model.

Reads a JSON list of pairs of texts from its input and writes their scores, (num_pairs,) float32, 1 means the same, to
OUT. It is the same verifier and tokenizer as behind the engine's `verify`. For evaluations.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from inference import settings
from inference.config import EngineConfig
from inference.front.encoder_tokenizer import read_pair_ids, read_shared_ids
from inference.models.adapter_config import is_adapter
from inference.models.embedder import load_embedder
from inference.models.lean_layers import make_lean
from inference.models.resolve import resolve
from inference.models.verifier import load_verifier
from inference.offline.vectors import in_batches, save


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m inference.offline.scores", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path, metavar="OUT.npy")
    options = parser.parse_args(arguments)
    save(options.out, score(options.folder, [(first, second) for first, second in json.load(sys.stdin)]))
    return 0


def score(folder: Path, pairs: Sequence[tuple[str, str]], dtype: str = "auto") -> np.ndarray:
    """The scores in the order of the pairs. Adapters are put over the encoder that EMBED_MODEL names."""
    if is_adapter(folder):
        config = settings.read(EngineConfig)
        return score_over(resolve(config.embed_model, config.data_dir), folder, pairs, dtype)
    verifier = load_verifier(folder, dtype)
    make_lean(verifier.model)
    ids = read_pair_ids(folder / "tokenizer.json")(pairs, verifier.max_tokens)
    return in_batches(ids, verifier.score_ids, np.empty(len(pairs), dtype=np.float32))


def score_over(
    embed_folder: Path, folder: Path, pairs: Sequence[tuple[str, str]], dtype: str = "auto"
) -> np.ndarray:
    """The scores of the adapters in `folder` over the encoder of `embed_folder`."""
    verifier = load_verifier(folder, embedder=load_embedder(embed_folder, dtype))
    make_lean(verifier.model)
    _, pair_ids = read_shared_ids(embed_folder / "tokenizer.json")
    ids = pair_ids(pairs, verifier.max_tokens)
    return in_batches(ids, verifier.score_ids, np.empty(len(pairs), dtype=np.float32))


if __name__ == "__main__":
    sys.exit(main())
