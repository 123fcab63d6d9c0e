"""Claim: dynamic instead of fixed batches give 3.4 times the requests per second and the first token in half the time.

Fixed: a batch waits until it is full or its oldest request has waited long enough, then runs until its longest answer
is done; whoever comes meanwhile waits for the next batch. Shorter answers of a batch go on as padding, but count as
complete, and are shown, at their own last token. Both kinds run in the same engine over the same trace.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from tests.bench.claims.findings import Bars, Finding, Row
from tests.bench.claims.rig import Arrival, Player, Rig, Track, ask, median

MIN_QPS_GAIN, MIN_TTFT_GAIN = 3.4, 1.9
FIXED_BATCH, FIXED_WAIT_S = 8, 0.2
LOAD = 1.0  # of what dynamic batches can take when all requests are there from the start


@dataclass(frozen=True, slots=True)
class Played:
    """One trace as it went: the wanted answers per second, and how long the median first token took."""

    qps: float
    ttft_s: float


def measure(rig: Rig) -> Finding:
    num_requests, mean_new, max_new = rig.size((96, 32, 128), (8, 6, 16))
    gap_s = 1 / (LOAD * _capacity(rig, num_requests, mean_new, max_new))
    pairs = []
    for seed in range(rig.rounds):
        trace = _trace(rig, seed, gap_s, (num_requests, mean_new, max_new))
        pairs.append((_play_fixed(rig.player(), trace), _play_dynamic(rig.player(), trace)))
    fixed, dynamic = ([pair[side] for pair in pairs] for side in (0, 1))
    qps_gain = median(new.qps / old.qps for old, new in pairs)
    ttft_gain = median(old.ttft_s / new.ttft_s for old, new in pairs)
    conditions = (
        f"{num_requests} requests, prompts of 16-128 tokens, answers of about {mean_new} (at most {max_new}), Poisson "
        f"arrivals as fast as dynamic batches can take them; fixed: {FIXED_BATCH} together, "
        f"waiting at most {1000 * FIXED_WAIT_S:.0f} ms to be full"
    )
    both = qps_gain >= MIN_QPS_GAIN and ttft_gain >= MIN_TTFT_GAIN
    old_qps, new_qps = median(p.qps for p in fixed), median(p.qps for p in dynamic)
    old_ms, new_ms = (1000 * median(p.ttft_s for p in side) for side in (fixed, dynamic))
    row = Row(
        "dynamic batches: 35 -> 120 requests/s (3.4 times) and first token 180 -> 95 ms (1.9 times), together",
        "fixed against dynamic, nothing else said",
        f"{qps_gain:.1f} times the requests/s ({old_qps:.2f} -> {new_qps:.2f}), first token {ttft_gain:.1f} times "
        f"as fast ({old_ms:.0f} -> {new_ms:.0f} ms)",
        conditions,
        both,
    )
    return Finding(
        rows=(row,),
        pictures={
            "dynamic-qps": Bars(
                "Answers per second", "answers/s", (("fixed", old_qps), ("dynamic", new_qps))
            ),
            "dynamic-ttft": Bars("Time to the first token", "ms", (("fixed", old_ms), ("dynamic", new_ms))),
        },
    )


def _trace(rig: Rig, seed: int, gap_s: float, sizes: tuple[int, int, int]) -> list[Arrival]:
    """The same requests and, in units of `gap_s`, the same times for the same seed."""
    num_requests, mean_new, max_new = sizes
    source, at_s, arrivals = random.Random(seed), 0.0, []
    for number in range(num_requests):
        num_new = min(max_new, 1 + int(source.expovariate(1 / mean_new)))
        prompt = rig.ids(source.randrange(16, 129), seed=1000 * seed + number)
        arrivals.append(Arrival(at_s, ask(prompt, num_new)))
        at_s += source.expovariate(1 / gap_s)
    return arrivals


def _capacity(rig: Rig, *sizes: int) -> float:
    """Requests per second when all of them are there from the start."""
    num_requests, mean_new, max_new = sizes
    trace = _trace(rig, 0, 1e-9, (num_requests, mean_new, max_new))
    return _play_dynamic(rig.player(), trace).qps


def _play_dynamic(player: Player, trace: Sequence[Arrival]) -> Played:
    return _summary(trace, player.run_trace(trace))


def _play_fixed(player: Player, trace: Sequence[Arrival]) -> Played:
    start, waiting, tracks = time.perf_counter(), list(trace), []
    while waiting:
        batch = _next_batch(waiting, start)
        del waiting[: len(batch)]
        longest = max(arrival.request.max_tokens for arrival in batch)
        requests = [msgspec.structs.replace(arrival.request, max_tokens=longest) for arrival in batch]
        batch_tracks = player.run(*requests)
        for arrival, track in zip(batch, batch_tracks, strict=True):
            track.arrived_at = start + arrival.at_s
        tracks += batch_tracks
    return _summary(trace, tracks)


def _next_batch(waiting: list[Arrival], start: float) -> list[Arrival]:
    """Sleeps until the batch is full or its oldest has waited long enough."""
    full_at = waiting[FIXED_BATCH - 1].at_s if len(waiting) >= FIXED_BATCH else float("inf")
    leaves_at = min(full_at, waiting[0].at_s + FIXED_WAIT_S)
    time.sleep(max(0.0, start + leaves_at - time.perf_counter()))
    now = time.perf_counter() - start
    return [arrival for arrival in waiting if arrival.at_s <= now][:FIXED_BATCH]


def _summary(trace: Sequence[Arrival], tracks: Sequence[Track]) -> Played:
    done_at = [
        track.token_times[arrival.request.max_tokens - 1]
        for arrival, track in zip(trace, tracks, strict=True)
    ]
    started = min(track.arrived_at for track in tracks)
    return Played(len(tracks) / (max(done_at) - started), median(track.ttft_s for track in tracks))
