"""The operator's door to the cache: rules, presets, entries, and a page that says what a question would meet.

Parses, calls, formats. Rules are judged by `policy`, entries deleted by `store`; nothing is decided here.
"""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db.models import Count, QuerySet, Sum
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.decorators import method_decorator
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST

from semcache import service, store
from semcache.explain import explained
from semcache.forms import CacheRuleForm, TryQuestionForm
from semcache.models import CacheEntry, CacheRule
from semcache.presets import add_missing


@admin.register(CacheRule)
class CacheRuleAdmin(admin.ModelAdmin):
    form = CacheRuleForm
    change_list_template = "admin/semcache/cacherule/change_list.html"
    list_display = (
        "name", "is_enabled", "priority", "matches", "mode", "shown_ttl", "sharing", "num_entries", "num_hits",
    )  # fmt: skip
    list_filter = ("is_enabled", "mode", "sharing")
    search_fields = ("name", "pattern")
    fieldsets = (
        (None, {"fields": ("name", "is_enabled", "priority", "tags")}),
        (
            _("Which questions"),
            {
                "fields": ("pattern", "keywords", "tenant", "model"),
                "description": _(
                    "The pattern or any keyword must be found in the question; a business line and a model must be the "
                    "question's. With all four empty the rule matches every question. Of several rules that match the "
                    "one with the lowest priority number decides; at equal priority “never cache” and “exact match "
                    "only” first, then the more specific rule, then the older one."
                ),
            },
        ),
        (
            _("What happens to them"),
            {
                "fields": ("mode", "sharing", "ttl_s", "stale_s", "max_temperature", "capacity"),
                "description": _("A change acts within two seconds, on stored answers too."),
            },
        ),
        (_("How alike a question must be"), {"fields": ("accept_similarity", "verify_similarity")}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[CacheRule]:
        rules: QuerySet[CacheRule] = super().get_queryset(request)
        return rules.annotate(entry_count=Count("entries"), hit_count=Sum("entries__use__hits", default=0))

    @admin.display(description=_("matches"))
    def matches(self, rule: CacheRule) -> str:
        said = [rule.pattern, ", ".join(rule.keywords[:4]), rule.tenant, rule.model]
        return " · ".join(part for part in said if part) or str(_("every question"))

    @admin.display(description=_("time to live"), ordering="ttl_s")
    def shown_ttl(self, rule: CacheRule) -> str:
        return shown_duration(rule.ttl_s)

    @admin.display(description=_("entries"), ordering="entry_count")
    def num_entries(self, rule: CacheRule) -> SafeString:
        url = reverse("admin:semcache_cacheentry_changelist")
        return format_html('<a href="{}?rule__id__exact={}">{}</a>', url, rule.pk, rule.entry_count)  # type: ignore[attr-defined]

    @admin.display(description=_("hits"), ordering="hit_count")
    def num_hits(self, rule: CacheRule) -> int:
        return rule.hit_count  # type: ignore[attr-defined, no-any-return]

    def save_model(self, request: HttpRequest, obj: CacheRule, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        service.forget_rules()

    def delete_model(self, request: HttpRequest, obj: CacheRule) -> None:
        super().delete_model(request, obj)
        service.forget_rules()

    def get_urls(self) -> list[URLPattern]:
        own = [
            path("presets/", self.admin_site.admin_view(self.presets_view), name="semcache_add_presets"),
            path("try/", self.admin_site.admin_view(self.try_view), name="semcache_try_question"),
        ]
        return own + super().get_urls()

    @method_decorator(require_POST)
    def presets_view(self, request: HttpRequest) -> HttpResponse:
        if not self.has_add_permission(request):
            return self._forbidden(request)
        names = add_missing(CacheRule)
        service.forget_rules()
        if names:
            messages.success(request, _("Added: %s.") % ", ".join(names))
        else:
            messages.info(request, _("All presets are there already; nothing was changed."))
        return HttpResponseRedirect(reverse("admin:semcache_cacherule_changelist"))

    def try_view(self, request: HttpRequest) -> HttpResponse:
        if not self.has_view_permission(request):
            return self._forbidden(request)
        form = TryQuestionForm(request.GET or None)
        explanation = explained(**form.cleaned_data) if form.is_valid() else None
        context = self.admin_site.each_context(request) | {
            "title": _("Try a question"), "opts": self.opts, "form": form, "explanation": explanation,
        }  # fmt: skip
        return TemplateResponse(request, "admin/semcache/cacherule/try_question.html", context)

    def _forbidden(self, request: HttpRequest) -> HttpResponse:
        return HttpResponse(_("You may not do this."), status=403, content_type="text/plain; charset=utf-8")


@admin.register(CacheEntry)
class CacheEntryAdmin(admin.ModelAdmin):
    """Stored answers: look, pin and evict. Nothing is written by hand, because an answer's text has its token ids."""

    list_display = (
        "question_shown",
        "rule",
        "sharing",
        "tenant",
        "owner",
        "hits",
        "is_pinned",
        "created_at",
        "expires_at",
    )
    list_filter = ("rule", "sharing", "is_pinned")
    list_select_related = ("rule", "use")
    search_fields = ("question", "answer")
    show_full_result_count = False
    ordering = ("-created_at",)
    actions = ("evict", "pin", "unpin")
    fields = (
        "question", "answer", "rule", "sharing", "tenant", "owner", "model_revision", "embedder", "generation",
        "tokenizer", "num_tokens", "hits", "is_pinned", "created_at", "expires_at", "scope", "prompt_sha256",
    )  # fmt: skip

    def get_readonly_fields(self, request: HttpRequest, obj: CacheEntry | None = None) -> tuple[str, ...]:
        return tuple(name for name in self.fields if name != "is_pinned")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    @admin.display(description=_("question"))
    def question_shown(self, entry: CacheEntry) -> str:
        return entry.question[:100]

    @admin.display(description=_("hits"), ordering="use__hits")
    def hits(self, entry: CacheEntry) -> int:
        use = getattr(entry, "use", None)
        return 0 if use is None else use.hits

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        actions = super().get_actions(request)
        actions.pop(
            "delete_selected", None
        )  # "evict" is the same without a page that lists every related row
        return actions

    @admin.action(description=_("Evict: delete the selected answers now"), permissions=["delete"])
    def evict(self, request: HttpRequest, chosen: QuerySet[CacheEntry]) -> None:
        self.log_deletions(request, chosen)
        num_gone = store.delete(list(chosen.values_list("pk", flat=True)))
        messages.success(request, ngettext("%d answer evicted.", "%d answers evicted.", num_gone) % num_gone)

    @admin.action(
        description=_("Pin: keep when the cache is full (not past the time to live)"), permissions=["change"]
    )
    def pin(self, request: HttpRequest, chosen: QuerySet[CacheEntry]) -> None:
        messages.success(request, _("Pinned: %d.") % chosen.update(is_pinned=True))

    @admin.action(description=_("Unpin"), permissions=["change"])
    def unpin(self, request: HttpRequest, chosen: QuerySet[CacheEntry]) -> None:
        messages.success(request, _("Unpinned: %d.") % chosen.update(is_pinned=False))


def shown_duration(seconds: int) -> str:
    """The largest unit that gives a whole number: 600 -> "10 min"."""
    for size, unit in ((86_400, _("d")), (3600, _("h")), (60, _("min"))):
        if seconds % size == 0:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
