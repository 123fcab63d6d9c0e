"""The second opinion that comes with the project: taken where the encoder it is made over is, and nowhere else."""

from __future__ import annotations

from pathlib import Path

from inference.models.resolve import OWN_VERIFIER, OWN_VERIFIER_OVER, resolve_verifier
from inference.models.tiny import write_tiny_embedder


def test_auto_takes_the_own_verifier_over_the_default_encoder_only(tmp_path: Path) -> None:
    assert resolve_verifier("auto", OWN_VERIFIER_OVER, tmp_path) == OWN_VERIFIER
    assert resolve_verifier("auto", str(write_tiny_embedder(tmp_path / "other")), tmp_path) is None
    assert resolve_verifier("auto", "", tmp_path) is None


def test_nothing_serves_none_and_a_folder_is_taken_as_it_is(tmp_path: Path) -> None:
    folder = write_tiny_embedder(tmp_path / "whole")
    assert resolve_verifier("", OWN_VERIFIER_OVER, tmp_path) is None
    assert resolve_verifier(str(folder), OWN_VERIFIER_OVER, tmp_path) == folder.absolute()
