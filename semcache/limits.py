"""The cache's own limits, read from Django's settings where the project sets them (`SEMCACHE_...`)."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings


@dataclass(frozen=True, slots=True)
class Limits:
    """`max_per_owner` is how many private entries an owner keeps, and how much of a full rule is safe with them."""

    budget_s: float
    max_entries: int
    max_per_owner: int
    shared_per_owner_per_hour: int


def limits() -> Limits:
    return Limits(
        budget_s=getattr(settings, "SEMCACHE_BUDGET_MS", 150) / 1000,
        max_entries=getattr(settings, "SEMCACHE_MAX_ENTRIES", 100_000),
        max_per_owner=getattr(settings, "SEMCACHE_MAX_PER_OWNER", 1000),
        shared_per_owner_per_hour=getattr(settings, "SEMCACHE_SHARED_PER_OWNER_PER_HOUR", 100),
    )
