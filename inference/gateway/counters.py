"""The numbers of a gateway core: its own, and the upstream's under our names, joined into one message.

Knows which figure comes from where. Decides nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from inference.core.messages import CoreStats, FinishedOut
from inference.gateway.metrics import Growth, Scrape


@dataclass(slots=True)
class Counters:
    """Totals since the core started, and the last reading of the upstream's page (None: there is none)."""

    steps: int = 0
    prompt_tokens: int = 0
    generated_tokens: int = 0
    cancelled: int = 0
    embedded_texts: int = 0
    verified_pairs: int = 0
    lane_batches: int = 0
    cached_tokens: int = 0
    computed_tokens: int = 0
    background_prompt_tokens: int = 0
    background_reused_tokens: int = 0
    background_prefilled_tokens: int = 0
    background_generated_tokens: int = 0
    scrape: Scrape | None = None
    _hits: Growth = field(default_factory=Growth)
    _preemptions: Growth = field(default_factory=Growth)
    _tells_cached: bool = False

    def on_finished(self, prompt_tokens: int, cached_tokens: int | None) -> None:
        """`cached_tokens` as the upstream told them; None when it told nothing."""
        self._tells_cached = self._tells_cached or cached_tokens is not None
        self.cached_tokens += cached_tokens or 0
        self.computed_tokens += prompt_tokens - (cached_tokens or 0)

    def on_background(self, end: FinishedOut) -> None:
        """Of the totals, what a request took that nobody asked for."""
        self.background_prompt_tokens += end.prompt_tokens
        self.background_reused_tokens += end.reused_tokens
        self.background_prefilled_tokens += end.prefilled_tokens
        self.background_generated_tokens += end.generated_tokens

    def on_scrape(self, scrape: Scrape | None) -> None:
        self.scrape = scrape
        if scrape is not None:
            self._hits.see(scrape.hit_tokens)
            self._preemptions.see(scrape.preemptions)

    def stats(self, *, running: int, waiting: int, waiting_tokens: int) -> CoreStats:
        """`running` and `waiting` are our own; an upstream that tells its numbers is believed about its batch."""
        scrape = self.scrape or Scrape(running=running)
        # Counted by the answers where each one says what was reused, else by the upstream's own counter.
        reused = self.cached_tokens if self._tells_cached else int(self._hits.total)
        return CoreStats(
            steps=self.steps,
            decode_forwards=self.steps,
            running=scrape.running,
            waiting=waiting + scrape.waiting,
            waiting_tokens=waiting_tokens,
            prompt_tokens=self.prompt_tokens,
            reused_prefix_tokens=reused,
            prefilled_tokens=self.computed_tokens,
            generated_tokens=self.generated_tokens,
            preemptions=int(self._preemptions.total),
            cancelled=self.cancelled,
            blocks_total=scrape.blocks_total,
            blocks_used=scrape.blocks_used,
            blocks_free=scrape.blocks_total - scrape.blocks_used,
            embedded_texts=self.embedded_texts,
            verified_pairs=self.verified_pairs,
            lane_batches=self.lane_batches,
            background_prompt_tokens=self.background_prompt_tokens,
            background_reused_tokens=self.background_reused_tokens,
            background_prefilled_tokens=self.background_prefilled_tokens,
            background_generated_tokens=self.background_generated_tokens,
        )
