"""transformers' own ways to generate for several requests: one by one, in padded batches, and continuously.

Knows torch and transformers; tokens are handed on as they are made. Greedy only, and an end token ends nothing, because
every answer of the bench has its length. Does not know HTTP.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, GenerationConfig
from transformers.generation.configuration_utils import ContinuousBatchingConfig
from transformers.generation.streamers import BaseStreamer

# A padded batch waits so long for company; all requests of a workload come within a few milliseconds.
GATHER_S = 0.05
PAGE_TOKENS = 256
CONTEXT = 2048
STEP_TOKENS = 512


@dataclass(frozen=True, slots=True)
class Request:
    """`take` gets the tokens in order, from any thread."""

    ids: Sequence[int]
    max_tokens: int
    take: Callable[[int], object]


class Batches:
    """`generate()` over up to `num` requests, padded to the longest; no other starts before the last of them ended."""

    def __init__(self, model: Any, num: int) -> None:
        self._model, self._num = model, num
        self._waiting: queue.SimpleQueue[Request] = queue.SimpleQueue()
        threading.Thread(target=self._run, daemon=True).start()

    def submit(self, request: Request) -> None:
        self._waiting.put(request)

    def _run(self) -> None:
        while True:
            self._generate(self._gathered())

    def _gathered(self) -> list[Request]:
        batch = [self._waiting.get()]
        try:
            while len(batch) < self._num:
                batch.append(self._waiting.get(timeout=GATHER_S))
        except queue.Empty:
            pass
        return batch

    def _generate(self, batch: Sequence[Request]) -> None:
        longest = max(len(request.ids) for request in batch)
        pads = [longest - len(request.ids) for request in batch]
        ids = [[0] * pad + list(request.ids) for pad, request in zip(pads, batch, strict=True)]
        mask = [[0] * pad + [1] * (longest - pad) for pad in pads]
        self._model.generate(
            torch.tensor(ids),
            attention_mask=torch.tensor(mask),
            generation_config=_greedy(max(request.max_tokens for request in batch)),
            streamer=_Streamer(batch),
        )


class _Streamer(BaseStreamer):
    def __init__(self, batch: Sequence[Request]) -> None:
        self._batch = batch
        self._num_made = -1  # what comes first is the prompt

    def put(self, value: torch.Tensor) -> None:
        self._num_made += 1
        if self._num_made:
            for request, token in zip(self._batch, value.tolist(), strict=True):
                if self._num_made <= request.max_tokens:
                    request.take(token)

    def end(self) -> None:
        pass


class Continuous:
    """transformers' continuous batching. Used on one running event loop."""

    def __init__(self, model: Any, num: int) -> None:
        config = ContinuousBatchingConfig(
            page_size=PAGE_TOKENS, num_blocks=num * CONTEXT // PAGE_TOKENS, max_batch_tokens=STEP_TOKENS
        )
        self._manager = model.init_continuous_batching(_greedy(CONTEXT), config)
        self._manager.start()
        self._num_asked = 0

    def submit(self, request: Request) -> None:
        self._num_asked += 1
        num_taken = 0

        def take(output: Any) -> None:
            nonlocal num_taken
            if output.error:
                raise RuntimeError(output.error)
            for token in output.generated_tokens[num_taken : request.max_tokens]:
                num_taken += 1
                request.take(token)

        name = f"request {self._num_asked}"
        self._manager.register_result_handler(name, take)
        self._manager.add_request(
            list(request.ids), name, max_new_tokens=request.max_tokens, streaming=True, eos_token_id=-1
        )


WAYS: dict[str, Callable[[Any, int], Batches | Continuous]] = {
    "one": lambda model, num: Batches(model, 1),
    "static": Batches,
    "continuous": Continuous,
}


def load(folder: Path) -> Any:
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16).eval()


def _greedy(max_tokens: int) -> GenerationConfig:
    return GenerationConfig(do_sample=False, max_new_tokens=max_tokens, eos_token_id=None, pad_token_id=0)
