"""The entry browser of the admin: find stored answers, act on them, edit one, evict many.

Parses, calls, formats: what an act does is `admin_acts`' business, which entries go together `admin_evict`'s.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, ClassVar

from django.contrib import admin, messages
from django.contrib.admin.models import LogEntry
from django.db.models import QuerySet
from django.db.models.functions import Length
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.defaultfilters import filesizeformat
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.timesince import timesince, timeuntil
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_POST

from semcache.admin.acts import ACTS, Act, edited, evict_many, keep_edited
from semcache.admin.audit import note_entries, note_many
from semcache.admin.export import FORMATS, MAX_ENTRIES, rows_of
from semcache.admin.filters import AgeFilter, OriginFilter
from semcache.admin.forms import BulkEvictForm, CacheEntryForm
from semcache.models import CacheEntry


class CacheEntryAdmin(admin.ModelAdmin):
    class Media:
        css: ClassVar = {"all": ["semcache/admin.css"]}

    form = CacheEntryForm
    change_list_template = "admin/semcache/cacheentry/change_list.html"
    change_form_template = "admin/semcache/cacheentry/change_form.html"
    list_display = ("question_shown", "rule", "creator", "hits", "size", "pinned", "age", "time_left")
    list_filter = (
        "rule",
        "sharing",
        ("model_revision", admin.AllValuesFieldListFilter),
        ("tenant", admin.AllValuesFieldListFilter),
        AgeFilter,
        OriginFilter,
        "is_pinned",
    )
    list_select_related = ("rule", "use")
    search_fields = ("question", "answer", "=owner", "=generation")
    search_help_text = _("Words of the question or the answer, a creator, or the id of a generation.")
    show_full_result_count = False
    list_per_page = 50
    ordering = ("-created_at",)
    actions = ("evict", "wrong_hit", "renew", "pin", "unpin", "promote", "export_jsonl", "export_csv")
    fields = (
        "question", "answer", "answer_sha256", "rule", "source", "sharing", "tenant", "owner", "model_revision",
        "embedder", "generation", "tokenizer", "num_tokens", "hits", "is_pinned", "created_at", "expires_at", "scope",
        "prompt_sha256",
    )  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> QuerySet[CacheEntry]:
        entries: QuerySet[CacheEntry] = super().get_queryset(request)
        return entries.defer("embedding", "token_ids").annotate(num_chars=Length("answer"))

    def get_readonly_fields(self, request: HttpRequest, obj: CacheEntry | None = None) -> tuple[str, ...]:
        return tuple(name for name in self.fields if name not in ("answer", "answer_sha256"))

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    @admin.display(description=_("question"))
    def question_shown(self, entry: CacheEntry) -> str:
        return entry.question[:100]

    @admin.display(description=_("hits"), ordering="use__hits")
    def hits(self, entry: CacheEntry) -> int:
        use = getattr(entry, "use", None)
        return 0 if use is None else use.hits

    @admin.display(description=_("size"), ordering="num_chars")
    def size(self, entry: CacheEntry) -> str:
        return filesizeformat(len(entry.answer.encode()))

    @admin.display(description=_("creator"), ordering="owner")
    def creator(self, entry: CacheEntry) -> str:
        who = (entry.owner or entry.get_source_display(), entry.tenant, entry.get_sharing_display())
        return " · ".join(str(part) for part in who if part)

    @admin.display(description=_("pinned"), ordering="is_pinned", boolean=True)
    def pinned(self, entry: CacheEntry) -> bool:
        return entry.is_pinned

    @admin.display(description=_("age"), ordering="created_at")
    def age(self, entry: CacheEntry) -> str:
        return since(entry.created_at)

    @admin.display(description=_("time left"), ordering="expires_at")
    def time_left(self, entry: CacheEntry) -> str:
        is_live = entry.expires_at > timezone.now()
        return timeuntil(entry.expires_at, depth=1) if is_live else str(_("expired"))

    # Editing.

    def save_model(self, request: HttpRequest, obj: CacheEntry, form: Any, change: bool) -> None:
        if form.is_edited:
            keep_edited(obj)

    def construct_change_message(  # type: ignore[override]
        self, request: HttpRequest, form: Any, formsets: Any, add: bool = False
    ) -> str:
        if not form.is_edited:
            return ""
        return edited(form)

    def log_change(self, request: HttpRequest, obj: CacheEntry, message: Any) -> None:  # type: ignore[override]
        if message:
            note_entries(request, [obj.pk], message)

    def log_deletions(self, request: HttpRequest, queryset: Any) -> list[LogEntry]:
        """Django's own lines quote the question, which must not outlive its entry."""
        note_entries(request, [entry.pk for entry in queryset], "evicted", is_deletion=True)
        return []

    # Acts: the same on a selection in the list and by the buttons at one entry.

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        actions = super().get_actions(request)
        # "evict" is the same without a page that lists every related row
        actions.pop("delete_selected", None)
        return actions

    @admin.action(description=_("Evict: delete the selected answers now"), permissions=["delete"])
    def evict(self, request: HttpRequest, chosen: QuerySet[CacheEntry]) -> None:
        self._act(request, ACTS["evict"], chosen)

    @admin.action(description=_("Wrong hit: evict, and remember that it was wrong"), permissions=["delete"])
    def wrong_hit(self, request: HttpRequest, chosen: QuerySet[CacheEntry]) -> None:
        self._act(request, ACTS["wrong-hit"], chosen)

    @admin.action(
        description=_("Renew: right as of now, the time to live starts again"), permissions=["change"]
    )
    def renew(self, request: HttpRequest, chosen: QuerySet[CacheEntry]) -> None:
        self._act(request, ACTS["renew"], chosen)

    @admin.action(
        description=_("Pin: keep when the cache is full (not past the time to live)"), permissions=["change"]
    )
    def pin(self, request: HttpRequest, chosen: QuerySet[CacheEntry]) -> None:
        self._act(request, ACTS["pin"], chosen)

    @admin.action(description=_("Unpin"), permissions=["change"])
    def unpin(self, request: HttpRequest, chosen: QuerySet[CacheEntry]) -> None:
        self._act(request, ACTS["unpin"], chosen)

    @admin.action(
        description=_("Promote: public from now on, where the rule promotes"), permissions=["change"]
    )
    def promote(self, request: HttpRequest, chosen: QuerySet[CacheEntry]) -> None:
        self._act(request, ACTS["promote"], chosen)

    @admin.action(description=_("Export as JSON lines"), permissions=["view"])
    def export_jsonl(self, request: HttpRequest, chosen: QuerySet[CacheEntry]) -> HttpResponse | None:
        return self._export(request, chosen, "jsonl")

    @admin.action(description=_("Export as CSV"), permissions=["view"])
    def export_csv(self, request: HttpRequest, chosen: QuerySet[CacheEntry]) -> HttpResponse | None:
        return self._export(request, chosen, "csv")

    def _export(self, request: HttpRequest, chosen: QuerySet[CacheEntry], name: str) -> HttpResponse | None:
        num_entries = chosen.count()
        if num_entries > MAX_ENTRIES:
            messages.error(request, _("Too many for one file: choose at most %d.") % MAX_ENTRIES)
            return None
        note_many(request, CacheEntry, f"exported {num_entries} as {name}")
        content_type, written = FORMATS[name]
        response = HttpResponse(written(rows_of(chosen)), content_type=content_type)
        response["Content-Disposition"] = f'attachment; filename="cache-entries.{name}"'
        return response

    def _act(self, request: HttpRequest, act: Act, chosen: QuerySet[CacheEntry]) -> None:
        messages.success(request, act.done % act(request, list(chosen.values_list("pk", flat=True))))

    # Pages of its own.

    def get_urls(self) -> list[URLPattern]:
        guarded: Callable[..., Any] = self.admin_site.admin_view
        own = [
            path("evict/", guarded(self.evict_view), name="semcache_evict_many"),
            path("<int:entry_id>/act/<slug:name>/", guarded(self.act_view), name="semcache_entry_act"),
        ]
        return own + super().get_urls()

    @method_decorator(require_POST)
    def act_view(self, request: HttpRequest, entry_id: int, name: str) -> HttpResponse:
        act = ACTS.get(name)
        if act is None:
            raise Http404
        if not request.user.has_perm(f"semcache.{act.permission}_cacheentry"):
            return forbidden()
        messages.success(request, act.done % act(request, [entry_id]))
        back = request.POST.get("next", "")
        if not url_has_allowed_host_and_scheme(back, {request.get_host()}, require_https=request.is_secure()):
            back = reverse("admin:semcache_cacheentry_changelist")
        return HttpResponseRedirect(back)

    @method_decorator(require_http_methods(["GET", "POST"]))
    def evict_view(self, request: HttpRequest) -> HttpResponse:
        """GET says how many; POST with the same choice evicts them."""
        if not self.has_delete_permission(request):
            return forbidden()
        form = BulkEvictForm(request.POST or request.GET or None)
        if not form.is_valid():
            return self._evict_page(request, form)
        chosen = form.chosen()
        num_entries = chosen.entries().count()
        if request.method == "GET":
            return self._evict_page(request, form, num_entries)
        num_gone = evict_many(request, chosen)
        messages.success(request, ngettext("%d answer evicted.", "%d answers evicted.", num_gone) % num_gone)
        return HttpResponseRedirect(reverse("admin:semcache_cacheentry_changelist"))

    def _evict_page(
        self, request: HttpRequest, form: BulkEvictForm, num_entries: int | None = None
    ) -> HttpResponse:
        context = self.admin_site.each_context(request) | {
            "title": _("Evict many answers"), "opts": self.opts, "form": form, "num_entries": num_entries,
        }  # fmt: skip
        return TemplateResponse(request, "admin/semcache/cacheentry/evict_many.html", context)


def since(moment: datetime | None) -> str:
    """The time since then in its largest unit."""
    return "–" if moment is None else timesince(moment, depth=1)


def forbidden() -> HttpResponse:
    return HttpResponse(_("You may not do this."), status=403, content_type="text/plain; charset=utf-8")
