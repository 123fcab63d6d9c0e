"""Filters of the entry browser that are more than a column's value: age, and where an answer came from."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from semcache.models import CacheEntry

AGES = {"1h": timedelta(hours=1), "1d": timedelta(days=1), "7d": timedelta(days=7)}


class AgeFilter(admin.SimpleListFilter):
    """How long ago the answer was stored, by the database's clock."""

    title = _("age")
    parameter_name = "age"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [
            ("lt-1h", _("less than an hour")),
            ("lt-1d", _("less than a day")),
            ("ge-1d", _("a day or more")),
            ("ge-7d", _("seven days or more")),
        ]

    def queryset(self, request: HttpRequest, queryset: QuerySet[CacheEntry]) -> QuerySet[CacheEntry]:
        side, _dash, name = (self.value() or "").partition("-")
        if name not in AGES:
            return queryset
        before = Now() - AGES[name]
        return queryset.filter(Q(created_at__gt=before) if side == "lt" else Q(created_at__lte=before))


class OriginFilter(admin.SimpleListFilter):
    """Where the answer came from."""

    title = _("origin")
    parameter_name = "origin"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return list(CacheEntry.Source.choices)

    def queryset(self, request: HttpRequest, queryset: QuerySet[CacheEntry]) -> QuerySet[CacheEntry]:
        return queryset.filter(source=self.value()) if self.value() in CacheEntry.Source else queryset
