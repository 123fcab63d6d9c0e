"""Shared prefixes at work: memory hears which blocks are the operator's, and missing ones are computed ahead.

Knows what is declared (`shared_prefixes`) and what is kept (`kept`). Does not know how a sequence runs.
"""

from __future__ import annotations

from collections.abc import Sequence

from inference.core.kept import KeptBlocks
from inference.core.messages import Admit, DeclaredPrefix, PrefixReport, SamplingSpec
from inference.core.prefix import Salts
from inference.core.shared_prefixes import SharedPrefixes

SHARE_PREFIX = "share:"  # of the ids of sequences that nobody asked for


class Sharing:
    """What users of one core share."""

    def __init__(self, prefixes: SharedPrefixes, kept: KeptBlocks) -> None:
        self._prefixes = prefixes
        self._kept = kept
        self._shared: dict[bytes, list[int]] = {}
        self._cold: list[list[int]] = []
        self._num_warmed = 0

    def declare(self, prefixes: Sequence[DeclaredPrefix]) -> None:
        """These and no others may be shared from now on."""
        self._prefixes.declare(prefixes)
        self._follow()

    def observe(self, request: Admit) -> None:
        """A request has arrived. What nobody asked for does not count."""
        if not request.is_background:
            self._prefixes.observe(request.salt, request.prompt_ids)
            self._follow()

    def salts(self, request: Admit) -> Salts:
        return self._prefixes.salts(request.salt, request.prompt_ids)

    def take_cold(self) -> list[Admit]:
        """Prefills of prefixes that have just been switched on."""
        cold, self._cold = self._cold, []
        self._num_warmed += len(cold)
        ids = range(self._num_warmed - len(cold), self._num_warmed)
        return [
            Admit(f"{SHARE_PREFIX}{number}", token_ids, SamplingSpec(), 0, [], b"", b"", is_background=True)
            for number, token_ids in zip(ids, cold, strict=True)
        ]

    def reports(self) -> list[PrefixReport]:
        return self._prefixes.reports()

    def _follow(self) -> None:
        before, self._shared = self._shared, self._prefixes.shared()
        for salt in before.keys() - self._shared.keys():
            self._kept.unshare(salt)
        for salt in self._shared.keys() - before.keys():
            self._kept.share(salt)
            self._cold.append(self._shared[salt])
