"""Reading ahead of a question: a conversation's history, and a draft behind it, when there is nothing better to do.

Knows when there is room, which ids the next prompt will begin with, and that each user has one such prefill under way:
the newest. When it runs is the scheduler's choice, which puts it behind everything. Knows no answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from inference.core.messages import CoreStats
from inference.front.background import Background
from inference.front.canonical import next_form
from inference.front.prompts import PromptBuilder
from inference.types import Segment

MAX_UNDER_WAY = 8
# Whoever has not asked for so long has gone on to something else; the prefill may never have had its turn.
PATIENCE_S = 60.0
# Blocks that running answers leave; below this a prefill nobody asked for would push out what others come back to.
LEAST_ROOM = 0.2


@dataclass(frozen=True, slots=True)
class _UnderWay:
    sequence: str
    conversation: bytes
    started_at: float


class Warming:
    """The prefills under way, by user."""

    def __init__(self, background: Background) -> None:
        self._background = background
        self._under_way: dict[bytes, _UnderWay] = {}

    def has_room(self, stats: CoreStats, salt: bytes) -> bool:
        """Whether `salt` may begin one: nobody waits, enough blocks are left, and not too many others read ahead."""
        num_others = len(self._under_way) - (salt in self._under_way)
        num_asked = stats.waiting - self._background.num_pending
        left = 1 - stats.blocks_used / stats.blocks_total if stats.blocks_total else 0.0
        return num_asked <= 0 and num_others < MAX_UNDER_WAY and left >= LEAST_ROOM

    def begin(self, ids: list[int], salt: bytes, conversation: bytes, now: float) -> None:
        """The newest one takes the place of the user's last one; what that has read stays kept."""
        self._stop(salt)
        sequence = self._background.warm(ids, salt, conversation)
        self._under_way[salt] = _UnderWay(sequence, conversation, now)

    def give_up(self, salt: bytes, conversation: bytes) -> None:
        """The question is here, or the conversation is forgotten."""
        found = self._under_way.get(salt)
        if found is not None and conversation in (b"", found.conversation):
            self._stop(salt)

    def sweep(self, now: float) -> None:
        for salt, found in list(self._under_way.items()):
            if now - found.started_at > PATIENCE_S:
                self._stop(salt)

    def on_finished(self, sequence: str) -> None:
        self._under_way = {salt: one for salt, one in self._under_way.items() if one.sequence != sequence}

    def clear(self) -> None:
        self._under_way.clear()

    def _stop(self, salt: bytes) -> None:
        found = self._under_way.pop(salt, None)
        if found is not None:
            self._background.stop(found.sequence)


def ids_ahead(prompts: PromptBuilder, segments: Sequence[Segment]) -> list[int]:
    """What every prompt has in common that goes on from `segments`: behind an answer any question, behind a draft any
    end of it. Raises InvalidRequest."""
    *history, last = segments
    if last.role == "user":
        return next_form(prompts, history, begun=last.text)
    return next_form(prompts, segments)
