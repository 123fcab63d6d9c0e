"""Sequences that no caller follows: probes that show the core works, and prefills ahead of a question.

Knows their ids and which are under way. Does not know when they are wanted.
"""

from __future__ import annotations

from inference.core.messages import Admit, Cancel, SamplingSpec
from inference.front.core_process import CoreLink
from inference.types import FinishReason

PROBE_PREFIX, WARM_PREFIX = "probe:", "warm:"
PREFIXES = (PROBE_PREFIX, WARM_PREFIX)


class Background:
    def __init__(self, core: CoreLink) -> None:
        self._core = core
        self._under_way: set[str] = set()
        self._num_started = 0

    @property
    def has_pending(self) -> bool:
        return bool(self._under_way)

    @property
    def num_pending(self) -> int:
        return len(self._under_way)

    def probe(self, ids: list[int]) -> None:
        """One token, never kept."""
        self._admit(PROBE_PREFIX, ids, 1, b"probe", b"")

    def warm(self, ids: list[int], salt: bytes, conversation: bytes) -> str:
        """A prefill only; its KV stays with the conversation. Gives the sequence's id."""
        return self._admit(WARM_PREFIX, ids, 0, salt, conversation)

    def stop(self, sequence_id: str) -> None:
        """Ends it where it is: the KV so far is kept."""
        self._core.send(Cancel(sequence_id, FinishReason.STOP))

    def on_finished(self, sequence_id: str) -> None:
        self._under_way.discard(sequence_id)

    def clear(self) -> None:
        self._under_way.clear()

    def _admit(self, prefix: str, ids: list[int], max_tokens: int, salt: bytes, conversation: bytes) -> str:
        self._num_started += 1
        sequence_id = f"{prefix}{self._num_started}"
        self._under_way.add(sequence_id)
        self._core.send(
            Admit(sequence_id, ids, SamplingSpec(), max_tokens, [], salt, conversation, is_background=True)
        )
        return sequence_id
