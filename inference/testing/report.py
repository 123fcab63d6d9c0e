"""What the scripted core says about itself: its model, what it counts, how full it is.

Knows answers in the making; changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection

from inference.core.messages import CoreReady
from inference.testing.embedding import DIM, TAG
from inference.testing.sequence import BLOCK_TOKENS, Sequence, blocks

# What this core counts; everything else it reports is zero or a gauge.
COUNTERS = (
    "steps", "decode_forwards", "prompt_tokens", "reused_head_tokens", "prefilled_tokens", "generated_tokens",
    "cancelled", "embedded_texts", "verified_pairs", "step_seconds_sum", "forgotten_blocks", "device_seconds",
    "background_prompt_tokens", "background_reused_tokens", "background_prefilled_tokens",
    "background_generated_tokens", "background_device_seconds",
)  # fmt: skip
BACKGROUND = ("prompt_tokens", "reused_tokens", "prefilled_tokens", "generated_tokens", "device_seconds")
MAX_CONTEXT = 8192
BLOCKS_TOTAL = 4096


def ready() -> CoreReady:
    return CoreReady(
        revision="scripted-1",
        max_context=MAX_CONTEXT,
        dtype="none",
        device="none",
        kv_bytes_per_token=1024,
        block_tokens=BLOCK_TOKENS,
        blocks_total=BLOCKS_TOTAL,
        embedder=TAG,
        embedding_dim=DIM,
        supports_verify=True,
        verifier=TAG,
    )


def gauges_of(
    running: Collection[Sequence], waiting: Collection[Sequence], heads: Collection[list[int]]
) -> dict[str, int]:
    """By the names of `CoreStats`. `heads` are the ids that are kept of conversations."""
    used = sum(blocks(len(s.admit.prompt_ids) + len(s.generated)) for s in running)
    cached = min(sum(blocks(len(ids)) for ids in heads), BLOCKS_TOTAL - used)
    return {
        "running": len(running),
        "waiting": len(waiting),
        "waiting_tokens": sum(len(s.admit.prompt_ids) for s in waiting),
        "blocks_total": BLOCKS_TOTAL,
        "blocks_used": used,
        "blocks_cached": cached,
        "blocks_idle": cached,
        "blocks_free": BLOCKS_TOTAL - used - cached,
    }
