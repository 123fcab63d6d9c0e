"""How many prompt tokens the next step may read, so that running streams keep their pace.

Learns from recent steps what a step costs by what it held. Knows seconds and counts; no clock of its own, no
sequences.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

# A slow device may miss the target with decoding alone. Prefill then still gets time: a third of what the rest of the
# step takes, so a quarter of the device, and streams slow down by a third at most.
PREFILL_SHARE = 1 / 3
# Whatever was measured, prefill goes on by this much: nobody starves, and a price that was learned wrongly is seen to
# be wrong. Fewer tokens would drown in the noise of a step.
MIN_PREFILL_TOKENS = 8
# Remembered steps, of those with prefill and those without apart: a long answer must not push out what is known
# about prompts. An older step counts less, as contexts grow and neighbours come and go.
WINDOW = 32
FADING = 0.95
# A fit takes about 0.1 ms, so it is made anew after so many steps. One that only decodes, the usual case, counts a
# quarter.
REFIT_AFTER = 4
# While the target bounds the step, every so many steps with prefill one reads half as much. Were all of one size,
# nothing could tell the price of a token from that of the base, and a wrong guess would confirm itself for ever.
PROBE_EVERY = 8
# How strongly a fit is held to the one before, in steps' worth of evidence. It decides only what the recent steps
# leave open, as the price of a row when every step had the same number of them.
INERTIA = 0.2
# A base step, 64 prompt tokens, 8 decoding rows and 64 lane tokens are of like size: the fit is done in these units.
UNITS = np.array([1.0, 64.0, 8.0, 64.0])


@dataclass(frozen=True, slots=True)
class StepCost:
    """What one step held and how long it took."""

    seconds: float
    prefill_tokens: int
    decode_rows: int
    lane_tokens: int


class Pacer:
    """The price list of a step: a base, and one price each for prompt tokens, decoding rows and lane tokens."""

    def __init__(self, target_s: float, max_tokens: int) -> None:
        """`target_s` infinite: measures, but never asks for a smaller step than `max_tokens`."""
        self._target_s = target_s
        self._max_tokens = max_tokens
        self._with_prefill: deque[StepCost] = deque(maxlen=WINDOW)
        self._without: deque[StepCost] = deque(maxlen=WINDOW)
        # Until something is measured a full step is taken to meet the target.
        prior = target_s / max_tokens if np.isfinite(target_s) else 0.0
        self._prices: np.ndarray = np.array([0.0, prior, 0.0, prior]) * UNITS
        self._num_news = 0.0
        self._num_read = 0  # steps with prefill

    def observe(self, cost: StepCost) -> None:
        if cost.seconds <= 0.0:
            return  # a clock that stood still tells nothing
        (self._with_prefill if cost.prefill_tokens else self._without).append(cost)
        self._num_read += cost.prefill_tokens > 0
        self._num_news += 1.0 if cost.prefill_tokens or cost.lane_tokens else 0.25
        if self._num_news >= min(REFIT_AFTER, (len(self._with_prefill) + len(self._without)) / 4):
            self._prices = self._fit()
            self._num_news = 0.0

    def budget(self, decode_rows: int, lane_tokens: int) -> int:
        """Prompt tokens that still fit into a step that decodes so many rows, within the floor and the full step."""
        base, per_token, per_row, per_lane_token = self._seconds()
        bare_s = base + per_row * decode_rows + per_lane_token * lane_tokens
        allowed_s = max(self._target_s - bare_s, PREFILL_SHARE * bare_s)
        if bare_s + per_token * self._max_tokens <= self._target_s:
            return self._max_tokens
        is_enough = allowed_s >= per_token * self._max_tokens
        num_tokens = self._max_tokens if is_enough else int(allowed_s / per_token)
        if self._num_read % PROBE_EVERY == PROBE_EVERY - 1:
            num_tokens //= 2
        return max(num_tokens, min(MIN_PREFILL_TOKENS, self._max_tokens))

    @property
    def prefill_tokens_per_s(self) -> float:
        """Speed of full steps that do nothing but prefill; 0 while nothing says what those cost.

        So it is before any was measured, and where the recent ones took no longer than their decoding rows explain.
        """
        base, per_token, _, _ = self._seconds()
        full_s = base + per_token * self._max_tokens
        return self._max_tokens / full_s if self._with_prefill and full_s > 0.0 else 0.0

    def _seconds(self) -> list[float]:
        """Of a base step, per prompt token, per decoding row, per lane token."""
        prices: list[float] = (self._prices / UNITS).tolist()
        return prices

    def _fit(self) -> np.ndarray:
        """Least squares over relative errors.

        A long step then counts no more than a short one, and one that a neighbour slowed down tenfold, whose every
        price is far too low beside its length, next to nothing.
        """
        steps = [*self._with_prefill, *self._without]
        ages = [
            len(window) - 1 - i for window in (self._with_prefill, self._without) for i in range(len(window))
        ]
        seconds = np.array([step.seconds for step in steps])
        held = [(1, step.prefill_tokens, step.decode_rows, step.lane_tokens) for step in steps]
        rows = np.array(held) / UNITS / seconds[:, None]
        return _solve(rows, FADING ** np.array(ages), self._prices, INERTIA / float(np.median(seconds)) ** 2)


def _solve(rows: np.ndarray, weights: np.ndarray, before: np.ndarray, inertia: float) -> np.ndarray:
    """Prices that make every row cost 1, held to those of `before`. Nothing has a negative price."""
    weighted = rows * weights[:, None]
    left = rows.T @ weighted + inertia * np.eye(len(before))
    right = weighted.sum(axis=0) + inertia * before
    used = np.ones(len(before), dtype=bool)
    prices: np.ndarray = np.zeros(len(before))
    while used.any():
        prices[:] = 0.0
        prices[used] = np.linalg.solve(left[np.ix_(used, used)], right[used])
        if (prices >= 0.0).all():
            break
        used &= prices > 0.0
    return prices
