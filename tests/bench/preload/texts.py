"""Histories and questions of about so many tokens, no two alike: what one has in common with another would be reused.

Knows how many tokens a common word costs; nothing of the site.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import Any

TALE = (
    "the river runs along a wide green valley where people grow wheat and keep sheep while small boats carry wood "
    "stone and letters from one old town to the next until winter comes with snow and every road is closed for weeks "
    "so that only birds can see how quiet the land has become under its white cover and how smoke rises from houses"
)
TOKENS_PER_WORD = 1.05
TURN_TOKENS = 250


def words(num_tokens: int, chance: random.Random) -> str:
    return " ".join(chance.choices(TALE.split(), k=max(1, round(num_tokens / TOKENS_PER_WORD))))


def conversation(num_tokens: int, chance: random.Random) -> dict[str, Any]:
    """A conversation as the import takes it: long answers to short questions."""
    now = datetime.now(UTC).isoformat()
    turn_tokens = min(num_tokens, TURN_TOKENS)
    turns: list[dict[str, Any]] = []
    for number in range(1, 2 * (num_tokens // turn_tokens) + 1):
        is_question = number % 2 == 1
        turns.append(
            {
                "number": number,
                "parent": number - 1 or None,
                "role": "user" if is_question else "assistant",
                "text": words(30 if is_question else turn_tokens - 40, chance),
                "created_at": now,
            }
        )
    return {"title": "bench", "created_at": now, "updated_at": now, "messages": turns, "active": len(turns)}


def file_of(conversations: list[dict[str, Any]]) -> dict[str, Any]:
    return {"format": "rill-conversations", "version": 1, "conversations": conversations}
