"""The encoders alone: the commands give what the engine's lanes give, in the order that was asked."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest

from inference.models.tiny import write_tiny_embedder, write_tiny_verifier
from inference.offline import scores, vectors

TEXTS = ["a much longer text than the others", "b", "", "a b c", "b"]
PAIRS = [("a", "b"), ("a long first text", "b"), ("b", "a")]


def test_vectors_are_in_the_order_of_the_texts_whatever_their_lengths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = write_tiny_embedder(tmp_path / "encoder")
    monkeypatch.setattr(vectors, "BATCH", 2)
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(TEXTS)))
    out = tmp_path / "out.npy"
    assert vectors.main([str(out), "--embed-model", str(encoder), "--dtype", "fp32"]) == 0
    alone = np.concatenate([vectors.embed(encoder, [text], "fp32") for text in TEXTS])
    np.testing.assert_allclose(np.load(out), alone, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(alone, axis=1), 1.0, atol=1e-5)
    assert [file.name for file in tmp_path.glob("out*")] == ["out.npy"]


def test_scores_are_in_the_order_of_the_pairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    verifier = write_tiny_verifier(tmp_path / "verifier")
    monkeypatch.setattr(vectors, "BATCH", 2)
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(PAIRS)))
    assert scores.main([str(verifier), str(tmp_path / "out.npy")]) == 0
    alone = np.concatenate([scores.score(verifier, [pair]) for pair in PAIRS])
    np.testing.assert_allclose(np.load(tmp_path / "out.npy"), alone, atol=1e-2)
    assert len(set(alone.tolist())) == len(PAIRS)
