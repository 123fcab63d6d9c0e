"""Training on a tiny encoder with random weights: what it learns means little, but nothing may be lost or differ."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from inference.front.encoder_tokenizer import read_shared_ids
from inference.models.adapter import CrossEncoder
from inference.models.embedder import load_embedder
from inference.models.errors import ModelNotUsable
from inference.models.store import verify
from inference.models.tiny import write_tiny_embedder
from inference.models.verifier import load_verifier
from inference.offline.scores import score, score_over
from inference.verifier import sources
from inference.verifier.batches import Batches
from inference.verifier.generate import folded, generate
from inference.verifier.mix import Mix, Shares, mix
from inference.verifier.sources import SourceError, read_lines
from inference.verifier.train import Workshop, train
from inference.verifier.trainer import CHECKPOINT, OtherPlan, Plan, Trainer

PLAN = Plan(
    epochs=2, batch_size=8, learning_rate=3e-3, num_layers=1, num_looks=4, patience=9, checkpoint_steps=1
)
# Fewer steps of more pairs: the scores of both kinds lie on both sides of a half, as with the other plan.
FEW_STEPS = replace(PLAN, batch_size=64)
SHARES = Shares(generated=60, copies=1, intents=16, statements=8, held_out=16)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_embedder(tmp_path_factory.mktemp("base"))


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Files of the right form, made up here."""
    folder = tmp_path / "data"
    folder.mkdir()
    asked = [{"a": f"fact {n}?", "b": f"tell fact {n}", "same_answer": n % 2 == 0} for n in range(20)]
    facts = [{"a": f"statement {n}", "b": f"stated: {n}", "label": 1} for n in range(20)]
    plain = (
        "fun_fact",
        "who_made_you",
        "taxes",
        "payday",
        "mpg",
        "income",
        "w2",
        "carry_on",
        "goodbye",
        "insurance",
    )
    files = {
        "fow_pairs_dev.jsonl": [json.dumps(row) for row in asked],
        "gptcache_mock.jsonl": [json.dumps(row) for row in facts],
        "pawsx_zh_train.tsv": [f"{n} 年有雨\t{n} 年下雨\t{n % 2}" for n in range(40)],
        "banking77_train.tsv": [
            *(f"question {a} on {n}\tintent{n}" for n in range(40) for a in "abcd"),
            *(f"a text of all intents\tintent{n}" for n in range(40)),
        ],
        "clinc150_train.tsv": [
            *(f"{a} asks {intent}\t{intent}" for intent in plain for a in "abcd"),
            *(f"weather in {a}\tweather" for a in "abcd"),
            *(f"nothing {a}\toos" for a in "abcd"),
        ],
    }
    for name, rows in files.items():
        content = ("\n".join(rows) + "\n").encode()
        (folder / name).write_bytes(content)
        monkeypatch.setitem(sources.CHECKSUMS, name, hashlib.sha256(content).hexdigest())
    return folder


def embed(texts: list[str]) -> np.ndarray:
    rng = np.random.default_rng(len(texts))
    vectors = rng.normal(size=(len(texts), 8)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def trainer(base: Path, folder: Path, plan: Plan = PLAN, plan_id: str = "x") -> Trainer:
    embedder = load_embedder(base, "fp32", "cpu")
    torch.manual_seed(0)
    _, pair_ids = read_shared_ids(base / "tokenizer.json")
    batches = Batches(generate(40, 0), pair_ids, 2, plan.batch_size, plan.seed)
    folder.mkdir(exist_ok=True)
    return Trainer(
        CrossEncoder(embedder.model, plan.num_layers), batches, plan, folder, plan_id, lambda line: None
    )


def bias(model: CrossEncoder) -> float:
    """A figure that moves with the weights."""
    return float(model.score.bias.detach().sum())


def test_the_loss_falls(base: Path, tmp_path: Path) -> None:
    work = trainer(base, tmp_path, replace(PLAN, epochs=12, checkpoint_steps=1000))
    losses = [work._step(step) for step in range(work.num_steps)]
    assert sum(losses[-5:]) < sum(losses[:5])


def test_a_training_that_was_killed_ends_with_the_same_weights(base: Path, tmp_path: Path) -> None:
    """Dropout, order, learning rate, optimizer and the best weights all go on: forget one and the weights differ."""
    whole = trainer(base, tmp_path / "whole").run(bias)

    class Killed(Exception):
        pass

    for stop in (3, 7):
        work = trainer(base, tmp_path / "killed")
        step = work._step

        def dying(number: int, stop: int = stop, step=step) -> float:
            if number == stop:
                raise Killed
            return step(number)

        work._step = dying
        with pytest.raises(Killed):
            work.run(bias)
        assert work.progress.step == stop
    ended = trainer(base, tmp_path / "killed").run(bias)
    assert set(ended) == set(whole)
    assert all(torch.equal(ended[name], weight) for name, weight in whole.items())


def test_a_kill_while_the_checkpoint_is_written_leaves_the_old_one(base: Path, tmp_path: Path) -> None:
    """A real kill: the process ends itself in the middle of the second checkpoint."""
    program = (
        "import os, signal, sys, torch\n"
        "from pathlib import Path\n"
        "from tests.inference.verifier.test_train import bias, trainer\n"
        "work, save, calls = trainer(Path(sys.argv[1]), Path(sys.argv[2])), torch.save, []\n"
        "def dying(state, file):\n"
        "    calls.append(1)\n"
        "    if len(calls) == 2:\n"
        "        file.write(b'half'); file.flush(); os.kill(os.getpid(), signal.SIGKILL)\n"
        "    save(state, file)\n"
        "torch.save = dying\n"
        "work.run(bias)\n"
    )
    environ = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", program, str(base), str(tmp_path)], env=environ, check=False)
    assert done.returncode == -signal.SIGKILL
    work = trainer(base, tmp_path)
    work._resume()
    assert work.progress.step == 1


def test_a_checkpoint_of_another_plan_is_refused(base: Path, tmp_path: Path) -> None:
    trainer(base, tmp_path).run(bias)
    assert (tmp_path / CHECKPOINT).is_file()
    with pytest.raises(OtherPlan, match="another plan"):
        trainer(base, tmp_path, plan_id="y").run(bias)


def test_training_stops_when_nothing_gets_better(base: Path, tmp_path: Path) -> None:
    plan = replace(PLAN, num_looks=10, patience=2)
    figures = iter([0.9, 0.8, 0.7, 1.0, 1.0])
    work = trainer(base, tmp_path, plan)
    work.run(lambda model: next(figures))
    assert work.progress.best == 0.9
    assert work.progress.step == 3


def test_both_orders_of_a_pair_are_seen(base: Path, tmp_path: Path) -> None:
    batches = trainer(base, tmp_path).batches
    seen = [
        {
            tuple(ids)
            for step in range(batches.per_epoch)
            for ids in batches.at(epoch * batches.per_epoch + step).ids.tolist()
        }
        for epoch in (0, 1)
    ]
    assert not {tuple(token for token in ids if token) for ids in seen[0]} & {
        tuple(token for token in ids if token) for ids in seen[1]
    }


def test_the_shipped_folder_scores_as_at_the_end_of_training(
    base: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[str] = []
    workshop = Workshop(base, [data], tmp_path / "work", tmp_path / "out", lines.append)
    out = train(workshop, FEW_STEPS, SHARES)
    verify(out)
    assert {file.name for file in out.iterdir()} == {
        "config.json",
        "adapter.safetensors",
        "README.md",
        "manifest.json",
    }
    said = next(line for line in lines if line.startswith("calibrated"))
    assert said.partition("\n")[2] in (out / "README.md").read_text()
    held_out = generate(SHARES.held_out, PLAN.seed, held_out=True)
    held_out = [pair for pair in held_out if pair.source.startswith("zh:")]
    texts = [(pair.first, pair.second) for pair in held_out]
    scores = score_over(base, out, texts, "fp32")
    monkeypatch.setenv("EMBED_MODEL", str(base))
    np.testing.assert_array_equal(score(out, texts, "fp32"), scores)
    same = np.array([pair.same for pair in held_out])
    row = next(line for line in said.split("\n") if line.startswith("| generated_zh"))
    cells = [cell.strip() for cell in row.split("|")]
    assert cells[7] == f"{(scores[~same] > 0.5).mean():.3f}"
    assert cells[8] == f"{(scores[same] > 0.5).mean():.3f}"
    again = train(workshop, FEW_STEPS, SHARES)
    assert (again / "manifest.json").read_bytes() == (out / "manifest.json").read_bytes()
    with pytest.raises(ModelNotUsable, match="set EMBED_MODEL"):
        load_verifier(out)


def test_the_mix_keeps_what_is_held_out_apart(data: Path) -> None:
    made = mix([data], embed, 0, SHARES)
    assert isinstance(made, Mix)
    assert mix([data], embed, 0, SHARES) == made
    for part, pairs in made.dev.items():
        assert pairs, part
        trained = {folded(text) for pair in made.train for text in (pair.first, pair.second)}
        assert not trained & {folded(text) for pair in pairs for text in (pair.first, pair.second)}, part


def test_no_text_is_a_trap_for_itself_and_no_pair_has_both_labels(data: Path) -> None:
    """Data sets hold one text under two intents; without a rule it would be learned as two questions."""
    made = mix([data], embed, 0, Shares(generated=40, copies=1, intents=400, statements=8, held_out=16))
    assert not [pair for pair in made.train if not pair.same and folded(pair.first) == folded(pair.second)]
    labels: dict[frozenset[str], bool] = {}
    for pair in made.train:
        assert labels.setdefault(frozenset((folded(pair.first), folded(pair.second))), pair.same) == pair.same


def test_intents_with_slots_and_questions_out_of_scope_give_no_paraphrases(data: Path) -> None:
    made = mix([data], embed, 0, SHARES)
    intents = [pair for pair in [*made.train, *made.dev["intents"]] if pair.source == "clinc150_train.tsv"]
    assert not [pair for pair in intents if pair.same and "weather" in pair.first]
    assert not [pair for pair in intents if "nothing" in pair.first + pair.second]


def test_another_file_under_a_known_name_is_refused(data: Path) -> None:
    with (data / "gptcache_mock.jsonl").open("a") as file:
        file.write("{}\n")
    with pytest.raises(SourceError, match="is not the gptcache_mock"):
        read_lines("gptcache_mock.jsonl", [data])
    with pytest.raises(SourceError, match="in none of the folders"):
        read_lines("pawsx_zh_train.tsv", [data / "elsewhere"])


def test_no_test_half_is_known_by_name() -> None:
    assert [name for name in sources.CHECKSUMS if "test" in name] == []
