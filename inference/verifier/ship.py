"""From trained weights to a folder that the engine serves: calibrated, small, with a card and checksums.

Knows what stands in the folder. Does not know how the weights came about.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file

from inference.models import store
from inference.models.adapter import CrossEncoder
from inference.models.adapter_config import WEIGHTS_NAME, AdapterConfig, write_adapter_config
from inference.verifier.figures import Figures, fit_scale
from inference.verifier.trainer import Weights

CARD_NAME = "README.md"
# PAWS-X is reported, but says nothing about questions to a cache.
JUDGED = ("fow", "free_en", "free_zh", "generated_en", "generated_zh", "intents")

Labels = Mapping[str, Sequence[bool]]  # by part of what is held out
Logits = Mapping[str, np.ndarray]


def take(model: CrossEncoder, weights: Weights) -> None:
    """As they will be read from the file: in half precision, half the size."""
    for name, weight in model.own_parameters().items():
        weight.data = weights[name].half().float()


def calibrate(model: CrossEncoder, logits: Logits, labels: Labels) -> tuple[float, float]:
    """Scales the head so that a score of 0.5 is as likely right as wrong where traps are as many as paraphrases."""
    values = np.concatenate([logits[part] for part in JUDGED])
    same = np.concatenate([np.asarray(labels[part], dtype=bool) for part in JUDGED])
    factor, offset = fit_scale(values, same, np.concatenate([_shares(labels[part]) for part in JUDGED]))
    with torch.no_grad():
        model.score.weight.mul_(factor)
        model.score.bias.mul_(factor).add_(offset)
        model.score.to(torch.float16).to(torch.float32)
    return factor, offset


def _shares(labels: Sequence[bool]) -> np.ndarray:
    """Both labels of each part weigh the same, whatever their numbers."""
    same = np.asarray(labels, dtype=bool)
    shares: np.ndarray = np.where(same, 0.5 / max(1, same.sum()), 0.5 / max(1, (~same).sum()))
    return shares


def write_folder(
    folder: Path, model: CrossEncoder, config: AdapterConfig, source: str, figures: Mapping[str, Figures]
) -> Path:
    """Whole or not at all."""

    def fill(target: Path) -> None:
        tensors = {
            name: weight.detach().half().contiguous() for name, weight in model.own_parameters().items()
        }
        save_file(tensors, target / WEIGHTS_NAME)
        write_adapter_config(target, config)
        (target / CARD_NAME).write_text(_card(config, tensors, source, figures), encoding="utf-8")

    return store.build(folder, source, fill)


def table(figures: Mapping[str, Figures]) -> str:
    names = list(asdict(next(iter(figures.values()))))
    lines = [f"| held out | {' | '.join(names)} |", f"|---|{'---|' * len(names)}"]
    for part, values in figures.items():
        cells = (
            f"{value:.3f}" if isinstance(value, float) else str(value) for value in asdict(values).values()
        )
        lines.append(f"| {part} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _card(config: AdapterConfig, tensors: Weights, source: str, figures: Mapping[str, Figures]) -> str:
    num = sum(tensor.numel() for tensor in tensors.values())
    return f"""# A verifier of questions

Says whether one answer serves two questions, English or Chinese: a cross-encoder made of the uppermost
{config.num_layers} layers and a head of its own over {config.base}; {num:,} weights, {2 * num / 1e6:.1f} MB. It needs
that encoder and no other (its layers' checksum is in `config.json`). Made by `make train-verifier`, {source}.

**Trained on** generated minimal pairs and hand-written rewordings of this project (`inference/verifier`); half of
fow-cache's pairs `dev` (CC BY 4.0); PAWS-X in Chinese (Google; train half); banking77 (PolyAI, CC BY 4.0) and CLINC150
(CC BY 3.0), train halves, as weak pairs; GPTCache's example pairs (MIT). **Licence** of these weights: the project's,
with those attributions.

**Held out** (frames, intents and texts never trained on; the model was chosen and calibrated on them, so figures of the
untouched test sets are lower):

{table(figures)}

**Limits.** It knows the kinds of differences of its generator, not facts: that two names mean one person is unknown to
it. Scores are calibrated for as many traps as paraphrases. Long texts are cut at {config.base}'s window.
"""
