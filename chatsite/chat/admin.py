"""Conversations, generations and shared links for operators: states, times, counts. What people wrote is not shown."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from chatsite.chat import sharing
from chatsite.chat.models import Conversation, Generation, ShareLink


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


@admin.register(ShareLink)
class ShareLinkAdmin(ReadOnly):
    """Links that show chats to the world. One that somebody complains of is found by its address and taken back."""

    list_display = ("id", "owner", "num_messages", "created_at", "revoked_at")
    list_select_related = ("owner",)
    list_filter = (("revoked_at", admin.EmptyFieldListFilter),)
    search_fields = ("=id", "owner__username")
    search_help_text = _("The address of a link, its id, or a username")
    date_hierarchy = "created_at"
    fields = ("id", "owner", "num_messages", "created_at", "revoked_at")
    actions = ("take_back",)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[ShareLink], search_term: str
    ) -> tuple[QuerySet[ShareLink], bool]:
        found, may_repeat = super().get_search_results(request, queryset, search_term)
        return found | queryset.filter(pk__in=sharing.found_by(search_term).values("pk")), may_repeat

    def has_take_back_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.has_perm("chat.change_sharelink"))

    @admin.action(description=_("Take back the selected links"), permissions=("take_back",))
    def take_back(self, request: HttpRequest, queryset: QuerySet[ShareLink]) -> None:
        taken = sharing.take_back(queryset)
        for link in taken:
            self.log_change(request, link, "Taken back.")
        self.message_user(request, _("%(count)d links were taken back.") % {"count": len(taken)})
