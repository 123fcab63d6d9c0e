"""The engine under measurement: a loaded model, fresh cores over it, and requests played into them.

Everything runs through the real loop, in this process, with the model's own weights, greedily, from fixed token ids.
Times are those of the loop: a token's time is when the step that made it returns. Knows no claim.
"""

from __future__ import annotations

import functools
import itertools
import random
import statistics
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from inference.config import EngineConfig
from inference.core.loop import CoreLoop
from inference.core.messages import Admit, Command, FinishedOut, SamplingSpec
from inference.core.startup import Core, assemble, warm_up
from inference.models import attention
from inference.models.loader import LoadedModel, load_causal_lm

Size = TypeVar("Size")
_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class Rig:
    """One model and how long to measure. Quick sizes show that a measurement works, and little else."""

    folder: Path
    dtype: str = "auto"
    rounds: int = 3
    is_quick: bool = False

    def size(self, full: Size, quick: Size) -> Size:
        return quick if self.is_quick else full

    def model(self, dtype: str = "") -> LoadedModel:
        return _load(self.folder, dtype or self.dtype)

    def core(
        self, dtype: str = "", *, num_blocks: int = 0, max_batch: int = EngineConfig().max_batch
    ) -> Core:
        """A fresh, warm core with nothing kept."""
        config = EngineConfig(max_batch=max_batch)
        core = assemble(config, self.model(dtype), num_blocks=num_blocks)
        warm_up(core.loop, has_embedder=False)
        return core

    def player(self, max_batch: int = EngineConfig().max_batch) -> Player:
        return Player(self.core(max_batch=max_batch).loop)

    def ids(self, length: int, seed: int = 0) -> list[int]:
        """Random ordinary tokens, the same for the same seed; control tokens come first in the vocabulary."""
        source, vocabulary = random.Random(seed), self.model().vocab_size
        return [source.randrange(vocabulary // 16, vocabulary) for _ in range(length)]


@functools.cache
def _load(folder: Path, dtype: str) -> LoadedModel:
    attention.register()
    return load_causal_lm(folder, dtype, "auto", attention.ATTENTION_NAME)


def ask(
    prompt_ids: Sequence[int], max_tokens: int, *, salt: bytes | None = None, conversation: bytes = b""
) -> Admit:
    """A greedy request that ends by length only. Without a salt it belongs to an owner of its own."""
    number = next(_numbers)
    return Admit(
        id=f"bench-{number}",
        prompt_ids=list(prompt_ids),
        sampling=SamplingSpec(),
        max_tokens=max_tokens,
        stop_ids=[],
        salt=b"owner-%d" % number if salt is None else salt,
        conversation=conversation,
    )


@dataclass(frozen=True, slots=True)
class Arrival:
    """A request that comes `at_s` after the start of its trace."""

    at_s: float
    request: Admit


@dataclass(slots=True)
class Track:
    """What happened to one request; times are absolute."""

    arrived_at: float
    token_times: list[float] = field(default_factory=list)
    token_ids: list[int] = field(default_factory=list)
    end: FinishedOut | None = None

    @property
    def ttft_s(self) -> float:
        return self.token_times[0] - self.arrived_at

    def done_s(self, num_tokens: int = 0) -> float:
        """From arrival to the last token, or to the one that was wanted last."""
        return self.token_times[num_tokens - 1] - self.arrived_at


@dataclass(frozen=True, slots=True)
class Step:
    seconds: float
    num_tokens: int  # that it made


class Player:
    """Plays requests into one loop and keeps track of them."""

    def __init__(self, loop: CoreLoop) -> None:
        self.loop = loop
        self.steps: list[Step] = []
        self.tracks: dict[str, Track] = {}

    def run(self, *requests: Admit) -> list[Track]:
        """All at once, until the last has ended."""
        return self.run_trace([Arrival(0.0, request) for request in requests])

    def run_trace(self, arrivals: Iterable[Arrival]) -> list[Track]:
        """An open loop: requests come when the trace says so, whatever the engine is doing."""
        start, waiting = time.perf_counter(), sorted(arrivals, key=lambda arrival: arrival.at_s)
        requests = [arrival.request for arrival in waiting]
        while waiting or self.loop.has_work:
            now = time.perf_counter() - start
            due = [arrival for arrival in waiting if arrival.at_s <= now]
            waiting = waiting[len(due) :]
            for arrival in due:
                self.tracks[arrival.request.id] = Track(start + arrival.at_s)
            if due or self.loop.has_work:
                self.step(*(arrival.request for arrival in due))
            else:
                time.sleep(max(0.0, waiting[0].at_s - now))
        return [self.tracks[request.id] for request in requests]

    def step(self, *commands: Command) -> None:
        started = time.perf_counter()
        *_, pack = self.loop.step(commands)
        now = time.perf_counter()
        self.steps.append(Step(now - started, len(pack.tokens)))
        for token in pack.tokens:
            self.tracks[token.id].token_times.append(now)
            self.tracks[token.id].token_ids.append(token.token)
        for end in pack.finished:
            if end.error:
                raise RuntimeError(f"a measured request failed: {end.error}")
            if end.id in self.tracks:  # a core also ends what nobody asked for: prefills of shared prompts
                self.tracks[end.id].end = end


def tokens_per_s(tracks: Sequence[Track]) -> float:
    """All tokens, from the first arrival to the last token."""
    started = min(track.arrived_at for track in tracks)
    ended = max(track.token_times[-1] for track in tracks)
    return sum(len(track.token_times) for track in tracks) / (ended - started)


def median(values: Iterable[float]) -> float:
    return float(statistics.median(values))
