"""One answer of the scripted core: how far it is, and what it would have taken on a device.

Knows no queue and no clock.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from inference.core.messages import Admit, FinishedOut
from inference.testing.script import Plan

BLOCK_TOKENS = 16
# What a token costs on the device that there is none of.
PREFILL_S, DECODE_S = 0.0001, 0.001


@dataclass(slots=True)
class Sequence:
    admit: Admit
    plan: Plan
    accepted_at: float
    started_at: float = 0.0
    due_at: float = 0.0
    num_steps: int = 0
    generated: list[int] = field(default_factory=list)
    num_made: int = 0  # `generated` loses what comes after a stop string
    reused: int = 0
    has_prefilled: bool = False
    has_stalled: bool = False


def end_of(sequence: Sequence, reason: str, error: str, now: float) -> FinishedOut:
    """What the core says of an answer that ends now."""
    admit = sequence.admit
    started = sequence.started_at or now
    num_kv = len(admit.prompt_ids) + len(sequence.generated)
    reused = sequence.reused if sequence.has_prefilled else 0
    prefilled = len(admit.prompt_ids) - reused if sequence.has_prefilled else 0
    return FinishedOut(
        admit.id,
        reason,
        error,
        prompt_tokens=len(admit.prompt_ids),
        reused_head_tokens=reused,
        prefilled_tokens=prefilled,
        generated_tokens=sequence.num_made,
        peak_kv_bytes=blocks(num_kv) * BLOCK_TOKENS * 1024,
        block_seconds=blocks(num_kv) * (now - started),
        queue_s=started - sequence.accepted_at,
        decode_s=now - started,
        device_seconds=prefilled * PREFILL_S + sequence.num_made * DECODE_S,
    )


def blocks(num_tokens: int) -> int:
    return -(-num_tokens // BLOCK_TOKENS)


def alternatives(token: int, num: int) -> list[tuple[int, float]]:
    """The token itself as the likeliest, then the first letters."""
    others = (other for other in range(ord("A"), ord("Z") + 1) if other != token)
    return [(token, -0.5), *((other, -2.0 - place) for place, other in enumerate(others))][: max(0, num)]


def common_prefix(first: list[int], second: list[int]) -> int:
    num = 0
    for left, right in zip(first, second, strict=False):
        if left != right:
            break
        num += 1
    return num
