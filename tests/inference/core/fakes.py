"""A runner without a model: the next token is a function of the whole history, so any mix-up shows in the answer."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from collections.abc import Sequence as Rows
from dataclasses import dataclass, field

import torch

from inference.core.books import Bounds
from inference.core.chunk import Chunk
from inference.core.forward import Forward
from inference.core.grammars import Grammars
from inference.core.kv_cache import BlockActions, KvCache
from inference.core.lane import Encode, Lane, LaneLimits
from inference.core.limits import Limits
from inference.core.loop import CoreLoop, CoreParts
from inference.core.prefix import PrefixCache
from inference.core.retention import Lifetimes
from inference.core.scheduler import Scheduler
from inference.core.speculation import Speculation
from tests.inference.core.driver import Driver

VOCABULARY = 50
BLOCK_TOKENS = 4
SLAB_BLOCKS = 5
LIFETIMES = Lifetimes(active_s=50.0, soft_ttl_s=500.0)
LANE = LaneLimits(max_batch=4, max_tokens=1024)


def next_token(history: Rows[int]) -> int:
    return (sum((place + 1) * token for place, token in enumerate(history)) + len(history)) % VOCABULARY


def quoting_token(history: Rows[int]) -> int:
    """Mostly what stood seven tokens before, else `next_token`: a text that repeats itself for a while, then turns."""
    fresh = next_token(history)
    return history[-7] if len(history) > 7 and fresh % 5 else fresh


@dataclass
class FakeRunner:
    """KV is the token itself, kept in its slot; a read of a wrong or unwritten slot changes the answer."""

    slots: dict[tuple[int, int], int] = field(default_factory=dict)
    failing: set[str] = field(default_factory=set)  # ids whose forward raises
    broken: set[str] = field(default_factory=set)  # ids whose logits are NaN
    broken_from: dict[str, int] = field(default_factory=dict)  # id: position whose KV is NaN
    batches: list[list[Chunk]] = field(default_factory=list)
    model: Callable[[Rows[int]], int] = next_token

    def run(self, chunks: Rows[Chunk]) -> torch.Tensor:
        self.batches.append(list(chunks))
        if any(chunk.sequence.id in self.failing for chunk in chunks):
            raise RuntimeError("a broken kernel")
        return torch.cat([self._rows(chunk) for chunk in chunks])

    def copy(self, source: int, target: int) -> None:
        for offset in range(BLOCK_TOKENS):
            if (source, offset) in self.slots:
                self.slots[target, offset] = self.slots[source, offset]

    def wipe(self, block: int) -> None:
        for offset in range(BLOCK_TOKENS):
            self.slots.pop((block, offset), None)

    def give_back(self, blocks: range) -> None:
        for block in blocks:
            self.wipe(block)

    def read(self, block: int) -> bytes:
        return bytes(self.slots[block, offset] for offset in range(BLOCK_TOKENS))

    def write(self, block: int, payload: memoryview) -> None:
        for offset in range(BLOCK_TOKENS):
            self.slots[block, offset] = payload[offset]

    def _rows(self, chunk: Chunk) -> torch.Tensor:
        sequence = chunk.sequence
        end = sequence.num_computed + chunk.num_tokens
        places = [(sequence.blocks[p // BLOCK_TOKENS], p % BLOCK_TOKENS) for p in range(end)]
        known = sequence.token_ids[sequence.num_computed :][: chunk.num_known]
        for place, token in zip(places[sequence.num_computed :], [*known, *chunk.draft], strict=True):
            self.slots[place] = token
        ends = range(end - chunk.num_rows + 1, end + 1)
        return torch.stack(
            [self._row(sequence.id, [self.slots[place] for place in places[:n]]) for n in ends]
        )

    def _row(self, key: str, history: list[int]) -> torch.Tensor:
        is_broken = key in self.broken or self.broken_from.get(key, len(history)) < len(history)
        row = torch.full((VOCABULARY,), float("nan") if is_broken else 0.0)
        if not is_broken:
            row[self.model(history)] = 1.0
        return row


@dataclass
class FakeCore:
    driver: Driver
    runner: FakeRunner
    kv: KvCache
    scheduler: Scheduler


def make_fake_core(
    num_blocks: int = 64,
    max_batch: int = 8,
    step_tokens: int = 32,
    encode: Encode | None = None,
    verify: Encode | None = None,
    lane: LaneLimits = LANE,
    lifetimes: Lifetimes = LIFETIMES,
    shared_overlap: float = 1.0,
    clock: Callable[[], float] | None = None,
    max_context: int = 0,
    speculate: str = "off",
    **rules: object,
) -> FakeCore:
    runner = FakeRunner()
    actions = BlockActions(runner.copy, runner.wipe, runner.give_back)
    kv = KvCache(
        num_blocks, PrefixCache(b"fake", BLOCK_TOKENS), actions, lifetimes=lifetimes, slab_blocks=SLAB_BLOCKS
    )
    scheduler = Scheduler(kv, Limits(max_batch, step_tokens, **rules))  # type: ignore[arg-type]
    max_context = max_context or num_blocks * BLOCK_TOKENS
    scheduler.speculation = Speculation(speculate, max_context)
    ticks = itertools.count()
    parts = CoreParts(
        forward=Forward(runner, Grammars()),  # type: ignore[arg-type]
        kv=kv,
        scheduler=scheduler,
        lane=Lane(lane, embed=encode, dim=2, verify=verify),
        bounds=Bounds(max_context, vocab_size=VOCABULARY, block_bytes=1000),
        clock=clock or (lambda: float(next(ticks))),
        shared_overlap=shared_overlap,
    )
    return FakeCore(Driver(CoreLoop(parts)), runner, kv, scheduler)


def expected(prompt: Rows[int], num_tokens: int, model: Callable[[Rows[int]], int] = next_token) -> list[int]:
    history = list(prompt)
    for _ in range(num_tokens):
        history.append(model(history))
    return history[len(prompt) :]
