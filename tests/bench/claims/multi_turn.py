"""Claim: keeping the KV of a conversation between turns saves 87 % of the time to the first token.

Each turn is asked twice: with the conversation's kept KV, and by somebody for whom nothing is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.bench.claims.findings import Finding, Lines, Row
from tests.bench.claims.rig import Rig, Track, ask, median

MIN_SAVED = 0.87
NUM_TURNS = 5


@dataclass(frozen=True, slots=True)
class Turn:
    num_prompt: int
    warm: Track
    cold: Track


def measure(rig: Rig) -> Finding:
    num_long, num_answer, num_last = rig.size((328, 56, 32), (40, 8, 8))
    new_tokens = [num_long] * (NUM_TURNS - 1) + [num_last]
    rounds = [_talk(rig, new_tokens, num_answer, seed) for seed in range(rig.rounds)]
    turns = list(zip(*rounds, strict=True))
    warm_ms, cold_ms = ([_ttft_ms(turn, side) for turn in turns] for side in ("warm", "cold"))
    last = turns[-1]
    saved = 1 - warm_ms[-1] / cold_ms[-1]
    num_history = last[0].num_prompt - num_last
    conditions = f"turn {NUM_TURNS} with {num_history} tokens of history and {num_last} new ones, one request at a time"
    prefilled = max(turn.warm.end.prefilled_tokens for turn in last if turn.warm.end)
    numbers = range(1, NUM_TURNS + 1)
    return Finding(
        rows=(
            Row(
                "KV kept between turns saves 87 % of the time to the first token",
                "CachedAttention (ATC'24): ShareGPT, up to 87 %",
                f"{saved:.0%} ({cold_ms[-1]:.0f} -> {warm_ms[-1]:.0f} ms)",
                conditions,
                saved >= MIN_SAVED,
            ),
            Row(
                "a turn reads only what is new",
                "ours: new tokens and one more",
                f"{prefilled} tokens read at turn {NUM_TURNS}, {num_last} of them new",
                conditions,
                prefilled <= num_last + 1,
            ),
        ),
        pictures={
            "multi-turn": Lines(
                "Time to the first token, turn by turn",
                "turn",
                "ms",
                (
                    ("KV kept", tuple(zip(numbers, warm_ms, strict=True))),
                    ("nothing kept", tuple(zip(numbers, cold_ms, strict=True))),
                ),
            )
        },
    )


def _talk(rig: Rig, new_tokens: Sequence[int], num_answer: int, seed: int) -> list[Turn]:
    player = rig.player()
    history: list[int] = []
    turns = []
    for number, num_new in enumerate(new_tokens):
        prompt = history + rig.ids(num_new, seed=100 * seed + number)
        (cold,) = player.run(ask(prompt, 1))
        (warm,) = player.run(ask(prompt, num_answer, salt=b"user", conversation=b"talk"))
        turns.append(Turn(len(prompt), warm, cold))
        history = prompt + warm.token_ids
    return turns


def _ttft_ms(turns: Sequence[Turn], side: str) -> float:
    return 1000 * median(getattr(turn, side).ttft_s for turn in turns)
