"""Conversations and generations for operators: states, times, counts. What people wrote is not shown here."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import admin
from django.http import HttpRequest

from chatsite.chat.models import Conversation, Generation


class ReadOnly(admin.ModelAdmin):
    """Rows that only the flow changes."""

    list_per_page = 50
    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Conversation)
class ConversationAdmin(ReadOnly):
    list_display = ("id", "owner", "is_temporary", "is_archived", "created_at", "updated_at")
    list_select_related = ("owner",)
    list_filter = ("is_temporary", "is_archived")
    search_fields = ("=id", "owner__username")
    fields = ("id", "owner", "is_pinned", "is_archived", "is_temporary", "created_at", "updated_at")
    date_hierarchy = "created_at"


@admin.register(Generation)
class GenerationAdmin(ReadOnly):
    list_display = (
        "id", "user", "state", "origin", "finish_reason", "error_code", "generated_tokens", "queue_ms", "ttft_ms",
        "decode_ms", "created_at",
    )  # fmt: skip
    list_select_related = ("user",)
    list_filter = ("state", "origin", "error_code")
    search_fields = ("=id", "user__username")
    date_hierarchy = "created_at"
    exclude: ClassVar = ("message",)
