"""The second opinion that comes with the project: taken where the encoder it is made over is, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from inference import settings
from inference.config import EngineConfig
from inference.front.encoder_tokenizer import read_shared_ids
from inference.models import store
from inference.models.embedder import load_embedder
from inference.models.resolve import OWN_VERIFIER, OWN_VERIFIER_OVER, resolve, resolve_verifier
from inference.models.tiny import write_tiny_embedder
from inference.models.verifier import load_verifier


def test_auto_takes_the_own_verifier_over_the_default_encoder_only(tmp_path: Path) -> None:
    assert resolve_verifier("auto", OWN_VERIFIER_OVER, tmp_path) == OWN_VERIFIER
    assert resolve_verifier("auto", str(write_tiny_embedder(tmp_path / "other")), tmp_path) is None
    assert resolve_verifier("auto", "", tmp_path) is None


def test_nothing_serves_none_and_a_folder_is_taken_as_it_is(tmp_path: Path) -> None:
    folder = write_tiny_embedder(tmp_path / "whole")
    assert resolve_verifier("", OWN_VERIFIER_OVER, tmp_path) is None
    assert resolve_verifier(str(folder), OWN_VERIFIER_OVER, tmp_path) == folder.absolute()


def test_its_files_are_the_ones_of_its_manifest() -> None:
    store.verify(OWN_VERIFIER)


@pytest.mark.model
def test_over_the_default_encoder_it_tells_opposites_from_other_words() -> None:
    folder = resolve(OWN_VERIFIER_OVER, settings.read(EngineConfig).data_dir)
    embedder = load_embedder(folder, "fp32", "cpu")
    verifier = load_verifier(OWN_VERIFIER, embedder=embedder)
    _, pair_ids = read_shared_ids(folder / "tokenizer.json")
    same = [
        ("How do I reset my password?", "what can I do to reset my password"),
        ("如何重置密码？", "怎么重置密码"),
    ]
    traps = [
        ("How do I turn Bluetooth on?", "How do I turn Bluetooth off?"),
        ("怎么打开蓝牙？", "怎么关闭蓝牙？"),
        ("Trains from Oslo to Rome", "Trains from Rome to Oslo"),
    ]
    scores = verifier.score_ids(pair_ids([*same, *traps], 160))
    assert min(scores[: len(same)]) > max(scores[len(same) :])
