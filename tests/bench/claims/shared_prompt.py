"""Claim: a system prompt whose KV is kept saves 40 % of the time to the first token.

For one user that needs nothing. Between users it needs an operator who declares the prompt, and traffic that begins
with it; nothing else is ever shared.
"""

from __future__ import annotations

from collections.abc import Sequence

from inference.core.messages import DeclaredPrefix, SharePrefixes
from tests.bench.claims.findings import Bars, Finding, Row
from tests.bench.claims.rig import Player, Rig, Track, ask, median

MIN_SAVED = 0.4
NUM_USERS = 16  # whose requests show that the declared prompt is worth sharing


def measure(rig: Rig) -> Finding:
    num_system, num_question = rig.size((400, 24), (64, 8))
    num_pairs = rig.size(5, 2)
    system = rig.ids(num_system)
    questions = [rig.ids(num_question, seed) for seed in range(1, 2 * num_pairs + 1)]
    player = rig.player()
    cold: list[Track] = []
    warm: list[Track] = []
    for number in range(num_pairs):
        owner, (first, second) = b"user-%d" % number, questions[2 * number : 2 * number + 2]
        cold += player.run(ask(system + first, 2, salt=owner))
        warm += player.run(ask(system + second, 2, salt=owner))
    cold_ms, warm_ms = _ttft_ms(cold), _ttft_ms(warm)
    conditions = f"system prompt of {num_system} tokens, question of {num_question}, one request at a time"
    shared = _between_users(rig.player(), system, questions)
    bars = [("cold", cold_ms), ("same user", warm_ms)]
    if shared:
        bars.append(("another user, declared", _ttft_ms(shared)))
    return Finding(
        rows=(
            _row("one user's", warm_ms, cold_ms, conditions, _reused(warm)),
            _row("declared, between users", _ttft_ms(shared), cold_ms, conditions, _reused(shared))
            if shared
            else Row(
                "the same between users, for a declared prompt",
                "none",
                "nothing was shared",
                conditions,
                None,
            ),
        ),
        pictures={"shared-prompt": Bars("Time to the first token", "ms", tuple(bars))},
    )


def _between_users(player: Player, system: list[int], questions: Sequence[list[int]]) -> list[Track]:
    """Requests of users who are new, once the declared prompt is shared; empty when it is not."""
    player.step(SharePrefixes([DeclaredPrefix("bench", system)]))
    tracks = [
        player.run(ask(system + question, 2))[0] for question in (list(questions) * NUM_USERS)[:NUM_USERS]
    ]
    return [track for track in tracks if track.end is not None and track.end.reused_shared_tokens]


def _row(whose: str, warm_ms: float, cold_ms: float, conditions: str, reused: int) -> Row:
    saved = 1 - warm_ms / cold_ms
    return Row(
        f"a kept system prompt saves 40 % of the time to the first token ({whose})",
        "a FAQ bot; nothing else said",
        f"{saved:.0%} ({cold_ms:.0f} -> {warm_ms:.0f} ms, {reused} tokens reused)",
        conditions,
        saved >= MIN_SAVED,
    )


def _ttft_ms(tracks: Sequence[Track]) -> float:
    return 1000 * median(track.ttft_s for track in tracks)


def _reused(tracks: Sequence[Track]) -> int:
    ends = [track.end for track in tracks if track.end is not None]
    return min(end.prompt_tokens - end.prefilled_tokens for end in ends)
