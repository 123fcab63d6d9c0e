"""The engine's numbers over all lives of its core: counters never go back when a core is started again.

Knows CoreStats and the front's own counts; does not know how they are shown.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from inference.core.messages import CoreStats
from inference.types import EngineStats

GAUGES = frozenset(
    {"running", "waiting", "waiting_tokens", "blocks_total", "blocks_used", "blocks_cached", "blocks_free"}
)
_COUNTERS = tuple(name for name in CoreStats.__struct_fields__ if name not in GAUGES)
_SHARED = tuple(name for name in CoreStats.__struct_fields__ if name in EngineStats.__dataclass_fields__)


@dataclass(slots=True)
class Counters:
    """`core` is the latest report; `on_core_lost` keeps what the dead core had counted."""

    core: CoreStats = field(default_factory=CoreStats)
    refused: int = 0
    ledger_fallbacks: int = 0
    _kept: dict[str, float] = field(default_factory=lambda: dict.fromkeys(_COUNTERS, 0))

    def total(self, name: str) -> float:
        value: float = getattr(self.core, name)
        return value if name in GAUGES else value + self._kept[name]

    def on_core_lost(self) -> None:
        self._kept = {name: self.total(name) for name in _COUNTERS}
        self.core = CoreStats()

    def stats(self, *, reason: str, core_restarts: int, live_logs: int) -> EngineStats:
        core = {name: self.total(name) for name in _SHARED}
        return EngineStats(
            is_ready=not reason,
            reason=reason,
            refused=self.refused,
            ledger_fallbacks=self.ledger_fallbacks,
            core_restarts=core_restarts,
            live_logs=live_logs,
            **core,  # type: ignore[arg-type]
        )
