"""What the semantic cache keeps: rules, entries, how entries are used, and which answers are being made.

Knows no users and no conversations: tenants, owners and scopes are opaque strings. The only door is `semcache.service`.
"""

from __future__ import annotations

from semcache.models.cases import CacheCase
from semcache.models.comparisons import CacheComparison
from semcache.models.entries import CacheEntry, CacheEntryUse, CacheFlight
from semcache.models.imports import CacheImport
from semcache.models.looks import CacheComplaint, CacheLook
from semcache.models.quality import CacheCheck, CachePromotion, CacheRuleHour
from semcache.models.rules import TEN_YEARS_S, CacheRule

__all__ = [
    "TEN_YEARS_S",
    "CacheCase",
    "CacheCheck",
    "CacheComparison",
    "CacheComplaint",
    "CacheEntry",
    "CacheEntryUse",
    "CacheFlight",
    "CacheImport",
    "CacheLook",
    "CachePromotion",
    "CacheRule",
    "CacheRuleHour",
]
