"""What a step costs on a device, as a formula, and the simulated clock that it moves.

step_s = base_s + prefill_s * prompt tokens + row_s * decoding rows + context_s * tokens of context read
"""

from __future__ import annotations

import random
from collections.abc import Sequence as Rows
from dataclasses import dataclass

from inference.core.chunk import Chunk
from inference.core.outcome import Outcome
from inference.core.sequence import State


@dataclass(frozen=True, slots=True)
class CostModel:
    """Seconds. A step varies by `noise` (of its logarithm); a `spike_share` of steps takes `spike` times as long."""

    base_s: float
    prefill_s: float
    row_s: float
    context_s: float
    noise: float = 0.05
    spike_share: float = 0.004
    spike: float = 5.0

    def step_s(self, prefill_tokens: int, decode_rows: int, context_tokens: int) -> float:
        """Without noise."""
        return (
            self.base_s
            + self.prefill_s * prefill_tokens
            + self.row_s * decode_rows
            + self.context_s * context_tokens
        )

    def times(self, factor: float) -> CostModel:
        return CostModel(
            self.base_s * factor, self.prefill_s * factor, self.row_s * factor, self.context_s * factor
        )


# SmolLM2-135M in bf16 on two AMD Turin cores. Measured there: all linear layers of one token 7.6 ms; a step of 16 rows
# at context 144 18.5 ms, of which attention 75 us in each of 30 layers; a prompt of 1,000 tokens 453 ms.
TWO_CORES = CostModel(base_s=0.008, prefill_s=0.00045, row_s=0.0005, context_s=0.000001)
# The same scaled to about 4 B parameters: decoding alone misses a target of 200 ms, so only the floor is left.
SLOW_CORES = TWO_CORES.times(30)


class Clock:
    """Simulated seconds."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class PricedForward:
    """Turns chunks into outcomes by moving the clock. Tokens are a function of the sequence and the position."""

    def __init__(self, costs: CostModel, clock: Clock, seed: int, vocab_size: int) -> None:
        self.bare_s = 0.0  # what the last step would have cost without prefill and noise
        self._costs = costs
        self._clock = clock
        self._random = random.Random(seed)  # noqa: S311 - a simulation must repeat
        self._vocab_size = vocab_size

    def run(self, chunks: Rows[Chunk]) -> list[Outcome]:
        decoding = [chunk for chunk in chunks if chunk.sequence.state is State.DECODE]
        prefilled = sum(chunk.num_tokens for chunk in chunks) - len(decoding)
        context = sum(chunk.sequence.num_computed for chunk in chunks)
        self.bare_s = self._costs.step_s(0, len(decoding), context)
        seconds = self._costs.step_s(prefilled, len(decoding), context)
        seconds *= self._random.lognormvariate(0.0, self._costs.noise)
        if self._random.random() < self._costs.spike_share:
            seconds *= self._costs.spike
        self._clock.now += seconds
        return [Outcome(self._token(chunk) if chunk.is_last else None) for chunk in chunks]

    def _token(self, chunk: Chunk) -> int:
        sequence = chunk.sequence
        return (sequence.arrival * 7919 + len(sequence.token_ids)) % self._vocab_size
