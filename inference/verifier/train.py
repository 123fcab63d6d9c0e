"""`make train-verifier`: from pairs to a folder that ENGINE_VERIFY_MODEL can name.

Knows the order of the work. May be killed at any moment and started again with the same arguments: it goes on.

    python -m inference.verifier.train --data FOLDER [--out data/models/verifier] [--pairs 12000]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np
import torch

from inference import settings
from inference.config import EngineConfig
from inference.front.encoder_tokenizer import EmbedIds, PairIds, read_shared_ids
from inference.models import store
from inference.models.adapter import CrossEncoder, weights_digest
from inference.models.adapter_config import AdapterConfig
from inference.models.embedder import Embedder, load_embedder
from inference.models.errors import ModelError
from inference.models.resolve import resolve
from inference.offline.vectors import in_batches
from inference.verifier.batches import MAX_TOKENS, Batches, to_batch
from inference.verifier.figures import Figures
from inference.verifier.generate import Pair
from inference.verifier.mix import Mix, Shares, mix
from inference.verifier.ship import JUDGED, calibrate, table, take, write_folder
from inference.verifier.sources import OWN_FOLDER, SourceError
from inference.verifier.trainer import OtherPlan, Plan, Trainer, score

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Workshop:
    """Where a training happens: `folder` keeps pairs and checkpoint until the work is done."""

    embed_folder: Path
    data_folders: Sequence[Path]
    folder: Path
    out: Path
    say: Say


def train(workshop: Workshop, plan: Plan, shares: Shares) -> Path:
    """The written folder. Raises SourceError, OtherPlan or ModelError."""
    say = workshop.say
    embedder = load_embedder(workshop.embed_folder, "fp32", "cpu")
    embed_ids, pair_ids = read_shared_ids(workshop.embed_folder / "tokenizer.json")
    separator = embed_ids(["a"], "", MAX_TOKENS)[0][-1]
    parts, digest = _pairs(workshop, plan, shares, embedder, embed_ids)
    torch.manual_seed(plan.seed)
    model = CrossEncoder(embedder.model, plan.num_layers)
    batches = Batches(parts.train, pair_ids, separator, plan.batch_size, plan.seed)
    base_digest = weights_digest(embedder.model)
    plan_id = _digest(json.dumps([asdict(plan), digest, base_digest]))
    trainer = Trainer(model, batches, plan, workshop.folder, plan_id, say)
    num_own = sum(weight.numel() for weight in model.own_parameters().values())
    say(f"{len(parts.train):,} pairs, {trainer.num_steps:,} steps, {num_own / 1e6:.2f} million weights")
    labels = {part: [pair.same for pair in pairs] for part, pairs in parts.dev.items()}

    def logits(model: CrossEncoder) -> dict[str, np.ndarray]:
        return {part: _logits(model, pairs, pair_ids, separator) for part, pairs in parts.dev.items()}

    def look(model: CrossEncoder) -> float:
        found = _figures(logits(model), labels)
        return float(np.mean([found[part].auc for part in JUDGED]))

    take(model, trainer.run(look))
    model.eval()
    factor, offset = calibrate(model, logits(model), labels)
    figures = _figures(logits(model), labels)
    say(f"calibrated: logits times {factor:.2f} plus {offset:.2f}\n{table(figures)}")
    config = AdapterConfig(embedder.name, base_digest, separator, plan.num_layers)
    return write_folder(workshop.out, model, config, f"plan {plan_id[:12]}", figures)


def _pairs(
    workshop: Workshop, plan: Plan, shares: Shares, embedder: Embedder, embed_ids: EmbedIds
) -> tuple[Mix, str]:
    """Made once and kept: finding neighbours takes minutes, and a training that goes on needs the very same pairs."""
    file = workshop.folder / "pairs.jsonl"
    key = json.dumps([plan.seed, asdict(shares), embedder.tag])
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    if text.partition("\n")[0] != key:
        workshop.say("making pairs and looking for hard neighbours")

        def embed(texts: Sequence[str]) -> np.ndarray:
            ids = embed_ids(texts, embedder.prefix, MAX_TOKENS)
            return in_batches(ids, embedder.embed_ids, np.empty((len(ids), embedder.dim), dtype=np.float32))

        text = key + "\n" + _to_lines(mix(workshop.data_folders, embed, plan.seed, shares))
        store.write_text(file, text)
    return _from_lines(text.split("\n")[1:-1]), _digest(text)


def _to_lines(made: Mix) -> str:
    parts = {"train": made.train} | made.dev
    return "".join(
        json.dumps([part, *asdict(pair).values()], ensure_ascii=False) + "\n"
        for part, pairs in parts.items()
        for pair in pairs
    )


def _from_lines(lines: Sequence[str]) -> Mix:
    parts: dict[str, list[Pair]] = {}
    for line in lines:
        part, *values = json.loads(line)
        parts.setdefault(part, []).append(Pair(*values))
    return Mix(parts.pop("train"), parts)


@torch.inference_mode()
def _logits(model: CrossEncoder, pairs: Sequence[Pair], pair_ids: PairIds, separator: int) -> np.ndarray:
    ids = pair_ids([(pair.first, pair.second) for pair in pairs], MAX_TOKENS)
    found = np.empty(len(ids), dtype=np.float32)
    return in_batches(ids, lambda rows: score(model, to_batch(rows, separator, [])).numpy(), found)


def _figures(logits: Mapping[str, np.ndarray], labels: Mapping[str, Sequence[bool]]) -> dict[str, Figures]:
    return {part: Figures.of(1 / (1 + np.exp(-values)), labels[part]) for part, values in logits.items()}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def main() -> int:
    options = _parser().parse_args()
    config = settings.read(EngineConfig)
    torch.set_num_threads(options.threads or len(os.sched_getaffinity(0)))
    data_dir = Path(config.data_dir)
    plan = Plan(**{field.name: getattr(options, field.name) for field in fields(Plan)})
    try:
        workshop = Workshop(
            embed_folder=resolve(config.embed_model, data_dir, say),
            data_folders=[OWN_FOLDER, *options.data],
            folder=options.work or data_dir / "verifier-training",
            out=options.out or data_dir / "models" / "verifier",
            say=say,
        )
        say(f"the verifier is in {train(workshop, plan, Shares.of(options.pairs))}")
    except (ModelError, SourceError, OtherPlan) as error:
        print(f"train-verifier: error: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m inference.verifier.train", description=__doc__)
    parser.add_argument(
        "--data", type=Path, action="append", default=[], help="folder with open data; repeatable"
    )
    parser.add_argument("--work", type=Path, help="keeps pairs and checkpoint (DATA_DIR/verifier-training)")
    parser.add_argument("--out", type=Path, help="gets the result (DATA_DIR/models/verifier)")
    parser.add_argument("--threads", type=int, default=0, help="0: all that this process may use")
    parser.add_argument("--pairs", type=int, default=12_000, help="generated ones; other parts in proportion")
    for field in fields(Plan):
        flag = "--" + field.name.replace("_", "-")
        parser.add_argument(flag, type=type(field.default), default=field.default)
    return parser


def say(line: str) -> None:
    print(f"train-verifier: {line}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
