"""What the gateway core has to say to the front, until the next pack leaves.

Knows one pack's contents. Everything that is said in one turn of the loop leaves together.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from inference.core.messages import (
    CoreStats,
    Embedded,
    FinishedOut,
    PrefillProgress,
    StepPack,
    TokenOut,
    Verified,
)


@dataclass(slots=True)
class Outbox:
    """`news` is set while there is something to say."""

    tokens: list[TokenOut] = field(default_factory=list)
    progress: list[PrefillProgress] = field(default_factory=list)
    finished: list[FinishedOut] = field(default_factory=list)
    embedded: list[Embedded] = field(default_factory=list)
    verified: list[Verified] = field(default_factory=list)
    news: asyncio.Event = field(default_factory=asyncio.Event)

    def take(self, positions: list[tuple[str, int]], stats: CoreStats) -> StepPack:
        """Everything so far, in one message."""
        pack = StepPack(
            tokens=self.tokens,
            progress=self.progress,
            finished=self.finished,
            positions=positions,
            embedded=self.embedded,
            verified=self.verified,
            stats=stats,
        )
        self.tokens, self.progress, self.finished, self.embedded, self.verified = [], [], [], [], []
        self.news.clear()
        return pack
