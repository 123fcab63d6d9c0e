"""Many entries leave at once: chosen by rule, model, creator and age, counted before, deleted in batches.

Knows rows only; who may do it and what is told is the admin's business.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from semcache.models import CacheEntry
from semcache.quality import promotion
from semcache.storage import store

BATCH = 500


@dataclass(frozen=True, slots=True)
class Chosen:
    """What the entries have in common; "" and None do not narrow. At least one thing must.

    What is chosen by whose it is includes the public answers that rest on theirs.
    """

    rule_id: int | None = None
    model_revision: str = ""
    tenant: str = ""
    owner: str = ""
    older_than_s: int | None = None

    def entries(self) -> QuerySet[CacheEntry]:
        found = CacheEntry.objects.filter(**self._given("rule_id", "model_revision"))
        whose = self._given("tenant", "owner")
        if whose:
            public = promotion.resting_on(CacheEntry.objects.filter(**whose))
            found = found.filter(Q(**whose) | Q(pk__in=public.values("pk")))
        if self.older_than_s is not None:
            found = found.filter(created_at__lte=Now() - timedelta(seconds=self.older_than_s))
        return found

    def __str__(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self._given(*self.__dataclass_fields__).items())

    def _given(self, *names: str) -> dict[str, Any]:
        return {name: value for name in names if (value := getattr(self, name)) not in ("", None)}


def evict_all(entries: QuerySet[CacheEntry]) -> int:
    """Delete what `entries` finds, in short transactions; how many there were. Entries stored meanwhile may stay."""
    ids = list(entries.order_by("pk").values_list("pk", flat=True))
    return sum(store.delete(ids[start : start + BATCH]) for start in range(0, len(ids), BATCH))
