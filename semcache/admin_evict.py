"""Many entries leave at once: chosen by rule, model, creator and age, counted before, deleted in batches.

Knows rows only; who may do it and what is told is the admin's business.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from django.db.models import QuerySet
from django.db.models.functions import Now

from semcache import store
from semcache.models import CacheEntry

BATCH = 500


@dataclass(frozen=True, slots=True)
class Chosen:
    """What the entries have in common; "" and None do not narrow. At least one thing must."""

    rule_id: int | None = None
    model_revision: str = ""
    tenant: str = ""
    owner: str = ""
    older_than_s: int | None = None

    def entries(self) -> QuerySet[CacheEntry]:
        values = {
            "rule_id": self.rule_id,
            "model_revision": self.model_revision or None,
            "tenant": self.tenant or None,
            "owner": self.owner or None,
        }
        found = CacheEntry.objects.filter(
            **{name: value for name, value in values.items() if value is not None}
        )
        if self.older_than_s is not None:
            found = found.filter(created_at__lte=Now() - timedelta(seconds=self.older_than_s))
        return found

    def __str__(self) -> str:
        said = [
            f"{name}={getattr(self, name)}"
            for name in self.__dataclass_fields__
            if getattr(self, name) not in ("", None)
        ]
        return ", ".join(said)


def evict_all(entries: QuerySet[CacheEntry]) -> int:
    """Delete what `entries` finds, in short transactions; how many there were. Entries stored meanwhile may stay."""
    ids = list(entries.order_by("pk").values_list("pk", flat=True))
    return sum(store.delete(ids[start : start + BATCH]) for start in range(0, len(ids), BATCH))
