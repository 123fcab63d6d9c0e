"""The ledger in the admin: prices are set, rows and days are read and taken away as CSV. Nothing booked is changed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib import admin
from django.db.models import Model, QuerySet
from django.http import HttpRequest, StreamingHttpResponse
from django.utils.translation import gettext_lazy as _

from chatsite.accounts.ledger import spreadsheet
from chatsite.accounts.models import Price, UsageDay, UsageRecord

FETCHED_AT_ONCE = 2000
# Columns of tables that name other rows are told by these, not by numbers.
NAMES = {"user": "user__username", "api_key": "api_key__prefix", "tenant": "tenant__slug"}


@admin.register(Price)
class PriceAdmin(admin.ModelAdmin):
    """A new price begins at its moment; what was booked before keeps the price of its own."""

    list_display = (
        "model",
        "valid_from",
        "currency",
        "per_million_prompt",
        "per_million_reused",
        "per_million_generated",
        "per_device_hour",
    )
    list_filter = ("currency",)
    search_fields = ("model",)
    ordering = ("model", "-valid_from")


class ReadOnly(admin.ModelAdmin):
    """Rows of the ledger: shown, filtered, taken away as CSV."""

    list_select_related = ("user", "tenant")
    show_full_result_count = False
    actions = ("as_csv",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    @admin.action(description=_("Take the selected rows away as CSV"))
    def as_csv(self, request: HttpRequest, queryset: QuerySet[Any]) -> StreamingHttpResponse:
        return spreadsheet.response(f"{self.opts.model_name}.csv", *_table(queryset))


@admin.register(UsageRecord)
class UsageRecordAdmin(ReadOnly):
    list_display = (
        "created_at",
        "user",
        "tenant",
        "model",
        "kind",
        "origin",
        "state",
        "prompt_tokens",
        "reused_tokens",
        "generated_tokens",
        "device_seconds",
        "cost",
        "currency",
        "saved_cost",
    )
    list_filter = ("kind", "origin", "state", "is_owed", "tenant")
    date_hierarchy = "created_at"


@admin.register(UsageDay)
class UsageDayAdmin(ReadOnly):
    list_display = (
        "day",
        "tenant",
        "user",
        "model",
        "kind",
        "origin",
        "answers",
        "prompt_tokens",
        "reused_tokens",
        "generated_tokens",
        "device_seconds",
        "cost",
        "currency",
        "saved_cost",
    )
    list_filter = ("kind", "origin", "tenant")
    date_hierarchy = "day"
    ordering = ("-day",)


def _table(rows: QuerySet[Any]) -> tuple[list[str], Iterable[tuple[Any, ...]]]:
    header = [field.name for field in rows.model._meta.concrete_fields]
    values = rows.values_list(*(NAMES.get(name, name) for name in header))
    return header, values.iterator(chunk_size=FETCHED_AT_ONCE)
