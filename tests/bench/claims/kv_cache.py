"""Claim: a KV cache makes generation 3 to 5 times as fast, and its step time does not grow with the text.

Without the cache every token reads the whole text again; here that is one request for each token, of an owner for whom
nothing is kept.
"""

from __future__ import annotations

from tests.bench.claims.findings import Finding, Lines, Row
from tests.bench.claims.rig import Rig, ask, median

MIN_SPEEDUP = 3.0
# A step that reads some hundred tokens more may be so much slower and still count as flat.
MAX_GROWTH = 1.25


def measure(rig: Rig) -> Finding:
    num_prompt, num_new = rig.size((64, 256), (32, 16))
    prompt = rig.ids(num_prompt)
    rounds = [_with_cache(rig, prompt, num_new) for _ in range(rig.rounds)]
    answer = rounds[0][1]
    cached_s = [median(times) for times in zip(*(steps for steps, _ in rounds), strict=True)]
    plain_s = _without_cache(rig, prompt, answer)
    speedup = sum(plain_s) / sum(cached_s)
    growth, plain_growth = _growth(cached_s[1:]), _growth(plain_s)
    conditions = f"{num_prompt} prompt tokens, {num_new} new ones, one request"
    lengths = [num_prompt + number for number in range(num_new)]
    return Finding(
        rows=(
            Row(
                "a KV cache makes generation 3-5 times as fast",
                "Llama-2-7B; nothing else said",
                f"{speedup:.1f} times ({sum(plain_s):.1f} s without, {sum(cached_s):.1f} s with)",
                conditions + "; without: the whole text again for each token, in the same engine",
                speedup >= MIN_SPEEDUP,
            ),
            Row(
                "with it the time of a step does not grow with the text",
                "none",
                f"last quarter against first quarter: {growth - 1:+.0%} with the cache, "
                f"{plain_growth - 1:+.0%} without",
                conditions + f"; flat means at most {MAX_GROWTH - 1:+.0%}",
                growth <= MAX_GROWTH,
            ),
        ),
        pictures={
            "kv-cache": Lines(
                "Time for one more token",
                "tokens before it",
                "ms",
                (
                    ("with the KV cache", _in_ms(lengths[1:], cached_s[1:])),
                    ("recomputed", _in_ms(lengths, plain_s)),
                ),
            )
        },
    )


def _with_cache(rig: Rig, prompt: list[int], num_new: int) -> tuple[list[float], list[int]]:
    """Seconds of each step, and the answer."""
    player = rig.player(max_batch=1)
    (track,) = player.run(ask(prompt, num_new))
    return [step.seconds for step in player.steps if step.num_tokens], track.token_ids


def _without_cache(rig: Rig, prompt: list[int], answer: list[int]) -> list[float]:
    """Seconds of each token of the same answer."""
    player = rig.player(max_batch=1)
    return [player.run(ask(prompt + answer[:number], 1))[0].ttft_s for number in range(len(answer))]


def _growth(seconds: list[float]) -> float:
    quarter = max(1, len(seconds) // 4)
    return median(seconds[-quarter:]) / median(seconds[:quarter])


def _in_ms(lengths: list[int], seconds: list[float]) -> tuple[tuple[float, float], ...]:
    return tuple((length, 1000 * value) for length, value in zip(lengths, seconds, strict=True))
