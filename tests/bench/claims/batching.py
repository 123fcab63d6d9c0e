"""Claim: continuous batching gives four times the tokens of one request after the other, in half the time."""

from __future__ import annotations

from tests.bench.claims.findings import Bars, Finding, Row
from tests.bench.claims.rig import Rig, Track, ask, median, tokens_per_s

MIN_SPEEDUP = 4.0
MIN_SAVED_LATENCY = 0.5


def measure(rig: Rig) -> Finding:
    num_requests, num_prompt, num_new = rig.size((16, 128, 48), (4, 24, 8))
    prompts = [rig.ids(num_prompt, seed) for seed in range(num_requests)]

    def run(max_batch: int) -> list[Track]:
        return rig.player(max_batch=max_batch).run(*(ask(prompt, num_new) for prompt in prompts))

    pairs = [(run(1), run(num_requests)) for _ in range(rig.rounds)]
    alone, together = (median(tokens_per_s(pair[side]) for pair in pairs) for side in (0, 1))
    speedup = median(tokens_per_s(batch) / tokens_per_s(one) for one, batch in pairs)
    saved = median(1 - _latency(batch) / _latency(one) for one, batch in pairs)
    conditions = (
        f"{num_requests} requests at once, {num_prompt} prompt tokens and {num_new} new ones each; "
        f"the same engine with a batch of 1 and of {num_requests}"
    )
    return Finding(
        rows=(
            Row(
                "batching gives at least 4 times the throughput of one by one",
                '"the same hardware"',
                f"{speedup:.1f} times ({alone:.0f} and {together:.0f} tokens/s)",
                conditions,
                speedup >= MIN_SPEEDUP,
            ),
            Row(
                "batching cuts latency by 50-70 %",
                "none",
                f"{saved:.0%} less time to a complete answer (median request)",
                conditions,
                saved >= MIN_SAVED_LATENCY,
            ),
        ),
        pictures={
            "batching": Bars(
                f"{num_requests} requests, one by one and batched",
                "tokens/s",
                (("one by one", alone), ("continuous batching", together)),
            )
        },
    )


def _latency(tracks: list[Track]) -> float:
    return median(track.done_s() for track in tracks)
