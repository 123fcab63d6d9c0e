"""The training loop: steps, looks at what is held out, checkpoints; it may be killed at any moment.

Knows one CrossEncoder and its batches. Does not know where pairs come from or what is shipped. Started again on the
same folder it goes on from the last checkpoint and ends with the same weights, bit for bit on the same machine.
"""

from __future__ import annotations

import math
import os
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from inference.models.adapter import CrossEncoder
from inference.verifier.batches import Batch, Batches

CHECKPOINT = "checkpoint.pt"
_WARM_UP = 0.06  # of all steps
_CLIP = 1.0
_WEIGHT_DECAY = 0.01
_HEAD_PACE = 5.0
_SAID_EVERY_S = 15.0

Weights = dict[str, torch.Tensor]


@dataclass(frozen=True, slots=True)
class Plan:
    """What a training is made of; a checkpoint of another plan is not taken."""

    seed: int = 0
    epochs: int = 2
    batch_size: int = 32
    learning_rate: float = 1e-4
    num_layers: int = 6  # of twelve: the lower ones cost a third of a step more and read words as before
    num_looks: int = 8  # at what is held out
    patience: int = 4  # looks without a better one
    checkpoint_steps: int = 50


@dataclass(slots=True)
class Progress:
    """All that a checkpoint keeps beside weights and optimizer."""

    step: int = 0
    best: float = -math.inf
    best_weights: Weights = field(default_factory=dict)
    num_worse: int = 0


class OtherPlan(Exception):
    """The folder holds a training of something else."""


class Trainer:
    """`look` gives a figure of the model as it is now; the highest one wins."""

    def __init__(
        self,
        model: CrossEncoder,
        batches: Batches,
        plan: Plan,
        folder: Path,
        plan_id: str,
        say: Callable[[str], None],
    ) -> None:
        self.model, self.batches, self.plan = model, batches, plan
        self._file, self._plan_id, self._say = folder / CHECKPOINT, plan_id, say
        model.eval()  # without dropout: drawing its numbers is a third of a step on a CPU, and looks tell overfitting
        self._own = model.own_parameters()
        self._optimizer = torch.optim.AdamW(self._groups(), lr=plan.learning_rate)
        self.num_steps = plan.epochs * batches.per_epoch
        self.progress = Progress()

    def run(
        self, look: Callable[[CrossEncoder], float], clock: Callable[[], float] = time.monotonic
    ) -> Weights:
        """The best weights. Raises OtherPlan."""
        self._resume()
        pace = _Pace(self.num_steps, self.progress.step, clock, self._say)
        look_steps = max(1, self.num_steps // self.plan.num_looks)
        while self.progress.step < self.num_steps and self.progress.num_worse < self.plan.patience:
            loss = self._step(self.progress.step)
            self.progress.step += 1
            pace.stepped(self.progress.step, loss)
            is_last = self.progress.step == self.num_steps
            if self.progress.step % look_steps == 0 or is_last:
                self._compare(look)
            if self.progress.step % self.plan.checkpoint_steps == 0 or is_last:
                self._save()
        return self.progress.best_weights

    def _step(self, step: int) -> float:
        for group in self._optimizer.param_groups:
            group["lr"] = self.plan.learning_rate * group["pace"] * self._rate(step)
        batch = self.batches.at(step)
        logits = score(self.model, batch)
        loss = nn.functional.binary_cross_entropy_with_logits(logits, batch.targets)
        self._optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self._own.values(), _CLIP)
        self._optimizer.step()
        return float(loss.detach())

    def _rate(self, step: int) -> float:
        warm_up = max(1, int(_WARM_UP * self.num_steps))
        if step < warm_up:
            return (step + 1) / warm_up
        return (self.num_steps - step) / (self.num_steps - warm_up)

    def _compare(self, look: Callable[[CrossEncoder], float]) -> None:
        figure = look(self.model)
        progress = self.progress
        is_better = figure > progress.best
        progress.num_worse = 0 if is_better else progress.num_worse + 1
        if is_better:
            progress.best = figure
            progress.best_weights = {name: weight.detach().clone() for name, weight in self._own.items()}
        self._say(f"step {progress.step}: held out {figure:.4f}{' (best)' if is_better else ''}")

    def _groups(self) -> list[dict[str, Any]]:
        """Norms and biases are not pulled towards zero; the head starts from nothing and learns faster."""
        groups: dict[tuple[float, float], list[torch.Tensor]] = defaultdict(list)
        for name, weight in self._own.items():
            pace = 1.0 if name.startswith("encoder.") else _HEAD_PACE
            groups[pace, _WEIGHT_DECAY if weight.ndim > 1 else 0.0].append(weight)
        return [
            {"params": weights, "weight_decay": decay, "pace": pace}
            for (pace, decay), weights in groups.items()
        ]

    def _save(self) -> None:
        """A kill leaves the old file or the new one."""
        unfinished = self._file.with_suffix(".unfinished")
        progress = self.progress
        state = {
            "plan_id": self._plan_id,
            "own": {name: weight.detach() for name, weight in self._own.items()},
            "optimizer": self._optimizer.state_dict(),
            "progress": [progress.step, progress.best, progress.best_weights, progress.num_worse],
        }
        with unfinished.open("wb") as file:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(self._file)

    def _resume(self) -> None:
        if not self._file.is_file():
            return
        state = torch.load(self._file, weights_only=True)
        if state["plan_id"] != self._plan_id:
            raise OtherPlan(f"{self._file} belongs to another plan: delete it or name another folder")
        with torch.no_grad():
            for name, weight in self._own.items():
                weight.copy_(state["own"][name])
        self._optimizer.load_state_dict(state["optimizer"])
        self.progress = Progress(*state["progress"])
        self._say(f"going on from step {self.progress.step} of {self.num_steps}")


def score(model: CrossEncoder, batch: Batch) -> torch.Tensor:
    """(num_pairs,) logits."""
    words = model.get_input_embeddings()(batch.ids)
    embeddings = words.to(model.score.weight.dtype)
    scored = model(inputs_embeds=embeddings, attention_mask=batch.mask, token_type_ids=batch.types)
    logits: torch.Tensor = scored.logits[:, 0]
    return logits


class _Pace:
    """Says now and then how far it is, how the loss goes, and how long it will take."""

    def __init__(
        self, num_steps: int, start: int, clock: Callable[[], float], say: Callable[[str], None]
    ) -> None:
        self._num_steps, self._start, self._clock, self._say = num_steps, start, clock, say
        self._began = self._said = clock()
        self._losses: list[float] = []

    def stepped(self, step: int, loss: float) -> None:
        self._losses.append(loss)
        now = self._clock()
        if now - self._said < _SAID_EVERY_S and step < self._num_steps:
            return
        left_s = (now - self._began) / (step - self._start) * (self._num_steps - step)
        mean = sum(self._losses) / len(self._losses)
        self._say(
            f"step {step} of {self._num_steps}: loss {mean:.3f}, at most {left_s / 60:.0f} minutes left"
        )
        self._said, self._losses = now, []
