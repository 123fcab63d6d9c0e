"""All that is measured, by name: ours and the peers, with the workloads that each is asked for by default."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from tests.bench.engines.gateway import Gateway
from tests.bench.engines.goals import (
    BETTER,
    CONTINUOUS,
    LLAMA,
    LLAMA_Q8,
    ONE_BY_ONE,
    OURS,
    OURS_INT8,
    OURS_W8A8,
    SITE,
    VLLM,
)
from tests.bench.engines.ours import Ours, Site
from tests.bench.engines.peers import LlamaCpp, Opened, Place, Transformers, Vllm
from tests.bench.engines.report import Label

ALL = ("a", "b", "c", "d", "e")


class Engine(Protocol):
    @property
    def peer(self) -> str:
        """What `--peer` calls it."""
        ...

    def open(self, place: Place) -> AbstractContextManager[Opened]:
        """A server that is ready. Raises NotStarted."""
        ...


@dataclass(frozen=True, slots=True)
class Entry:
    label: Label
    engine: Engine
    workloads: tuple[str, ...] = ALL


ENGINES: dict[str, Entry] = {
    OURS: Entry(Label("ours, own door", "ours"), Ours("bf16")),
    OURS_INT8: Entry(
        Label("ours, weights in int8", "int8"), Ours("bf16", {"ENGINE_WEIGHTS": "int8"}), ("a", "b", "c")
    ),
    OURS_W8A8: Entry(Label("ours, w8a8", "w8a8"), Ours("bf16", {"ENGINE_WEIGHTS": "w8a8"}), ("a", "b", "c")),
    SITE: Entry(Label("ours, through `/v1`", "/v1"), Site("bf16")),
    LLAMA: Entry(Label("llama.cpp bf16", "llama.cpp"), LlamaCpp("BF16")),
    LLAMA_Q8: Entry(Label("llama.cpp Q8_0", "Q8_0"), LlamaCpp("Q8_0"), ("a", "b", "c")),
    VLLM: Entry(Label("vLLM for CPU bf16", "vLLM"), Vllm()),
    "gateway-vllm": Entry(Label("ours, as a gateway over that vLLM", "gateway"), Gateway(), ("a", "b")),
    ONE_BY_ONE: Entry(Label("transformers, one by one", "one by one"), Transformers("one"), ("a", "c")),
    "transformers-static": Entry(
        Label("transformers, padded batches", "padded"), Transformers("static"), ("a", "b")
    ),
    CONTINUOUS: Entry(
        Label("transformers, continuous batching", "continuous"), Transformers("continuous"), ("a",)
    ),
}
# Whose capacity sets the rate of arrivals in workload d.
CAPACITIES = BETTER
