"""The engine's numbers over all lives of its core: counters never go back when a core is started again.

Knows CoreStats and the front's own counts; does not know how they are shown.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from inference.core.messages import CoreStats
from inference.types import EngineStats, SharedPrefixStats

COUNTERS = frozenset(
    {
        "steps", "decode_forwards", "prompt_tokens", "reused_head_tokens", "reused_prefix_tokens",
        "reused_shared_tokens", "reused_disk_tokens", "prefilled_tokens", "generated_tokens", "preemptions",
        "evicted_blocks", "cancelled", "embedded_texts", "verified_pairs", "lane_batches", "step_seconds_sum",
        "forgotten_blocks", "leak_alarms", "disk_written_blocks", "disk_restored_blocks", "disk_refused_blocks",
        "disk_skipped_blocks", "device_seconds", "background_prompt_tokens", "background_reused_tokens",
        "background_prefilled_tokens", "background_generated_tokens", "background_device_seconds",
        "warmed_tokens", "warmed_used_tokens", "warmed_wasted_tokens", "drafted_tokens", "accepted_tokens",
    }
)  # fmt: skip
_REPORTED = tuple(
    name
    for name in CoreStats.__struct_fields__
    if name in EngineStats.__dataclass_fields__ and name != "shared_prefixes"
)


@dataclass(slots=True)
class Counters:
    """`core` is the latest report; `on_core_lost` keeps what the dead core had counted."""

    core: CoreStats = field(default_factory=CoreStats)
    refused: int = 0
    ledger_fallbacks: int = 0
    repetitions: int = 0
    trimmed_requests: int = 0
    canonicalised: int = 0
    _kept: dict[str, float] = field(default_factory=lambda: dict.fromkeys(COUNTERS, 0))

    def total(self, name: str) -> float:
        value: float = getattr(self.core, name)
        return value + self._kept[name] if name in COUNTERS else value

    def on_core_lost(self) -> None:
        self._kept = {name: self.total(name) for name in COUNTERS}
        self.core = CoreStats()

    def stats(self, *, reason: str, core_restarts: int, live_logs: int) -> EngineStats:
        core = {name: self.total(name) for name in _REPORTED}
        return EngineStats(
            is_ready=not reason,
            reason=reason,
            refused=self.refused,
            ledger_fallbacks=self.ledger_fallbacks,
            repetitions=self.repetitions,
            trimmed_requests=self.trimmed_requests,
            canonicalised=self.canonicalised,
            shared_prefixes=tuple(
                SharedPrefixStats(report.name, report.num_tokens, report.overlap, report.is_shared)
                for report in self.core.shared_prefixes
            ),
            core_restarts=core_restarts,
            live_logs=live_logs,
            **core,  # type: ignore[arg-type]
        )
