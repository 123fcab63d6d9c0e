"""How far a model in some precision is from itself in fp32, over fixed answers.

The answers are what fp32 says greedily; each network is given them and says, at every place, what it would say next.
So one other token does not make all that follow differ. Knows networks and paged KV; no files, no processes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from inference.config import EngineConfig
from inference.core.startup import assemble
from inference.front.model_folder import read_model_folder
from inference.models.attention import Group, RaggedBatch
from inference.models.kv_tensors import KvShape, KvTensors
from inference.models.loader import LoadedModel
from inference.types import Segment
from tests.bench.claims.rig import Player, ask

PROMPTS = Path(__file__).parent / "prompts.txt"
BLOCK_TOKENS = 16


@dataclass(frozen=True, slots=True)
class Quality:
    """`agreement`: share of places with the same best token. `worst_gap`: how much less than its own best token, in
    logits, this precision ever gives that of fp32. `mean_kl`: of its distribution from that of fp32, in nats."""

    num_places: int
    agreement: float
    worst_gap: float
    mean_kl: float


@dataclass(frozen=True, slots=True)
class Answered:
    """A prompt with the answer of fp32. `num_prompt` is how many of the ids are the prompt's."""

    ids: tuple[int, ...]
    num_prompt: int


def prompts(folder: Path, num: int) -> list[list[int]]:
    """Ids of the first questions of both languages alternately, as the model's template puts them."""
    lines = PROMPTS.read_text(encoding="utf-8").splitlines()
    half = len(lines) // 2
    mixed = [line for pair in zip(lines[:half], lines[half:], strict=True) for line in pair]
    builder = read_model_folder(folder, None).prompts
    return [list(builder.build([Segment("user", line)]).ids) for line in mixed[:num]]


def answered(model: LoadedModel, asked: Sequence[Sequence[int]], num_tokens: int) -> list[Answered]:
    """Greedily, by the engine's own loop."""
    player = Player(assemble(EngineConfig(), model).loop)
    tracks = player.run(*(ask(prompt, num_tokens) for prompt in asked))
    return [
        Answered((*prompt, *track.token_ids), len(prompt))
        for prompt, track in zip(asked, tracks, strict=True)
    ]


@torch.inference_mode()
def logits(model: LoadedModel, ids: Sequence[int], num_last: int) -> torch.Tensor:
    """(num_last, vocabulary) fp32 after the last so many of `ids`, which are one sequence."""
    shape = KvShape(model.num_layers, model.num_kv_heads, model.head_dim, BLOCK_TOKENS, model.dtype)
    num = len(ids)
    tensors = KvTensors(shape, -(-num // BLOCK_TOKENS), torch.device(model.device))
    positions = torch.arange(num, device=model.device)
    rows = torch.from_numpy(tensors.rows_of(np.arange(-(-num // BLOCK_TOKENS)))).to(model.device)
    slots = rows[positions // BLOCK_TOKENS] * BLOCK_TOKENS + positions % BLOCK_TOKENS
    group = Group(start=0, num_rows=1, num_queries=num, rows=rows[None], positions=positions[None])
    batch = RaggedBatch(tensors, [group], slots)
    token_ids = torch.tensor(ids, device=model.device)
    return model.network(token_ids, positions, batch, positions[-num_last:])


def compare(exact: LoadedModel, other: LoadedModel, answers: Sequence[Answered]) -> Quality:
    places = [torch.cat(found) for found in zip(*_places(exact, other, answers), strict=True)]
    same, gaps, divergences = places
    return Quality(
        len(same), float(same.float().mean()), float(gaps.max()), max(0.0, float(divergences.mean()))
    )


def _places(
    exact: LoadedModel, other: LoadedModel, answers: Sequence[Answered]
) -> Iterator[tuple[torch.Tensor, ...]]:
    for answer in answers:
        num = len(answer.ids) - answer.num_prompt
        wanted, found = (logits(model, answer.ids[:-1], num) for model in (exact, other))
        best = wanted.argmax(-1)
        given = found.gather(-1, best[:, None])[:, 0]
        expected, got = wanted.log_softmax(-1), found.log_softmax(-1)
        divergence = (expected.exp() * (expected - got)).sum(-1)
        yield found.argmax(-1) == best, found.amax(-1) - given, divergence
