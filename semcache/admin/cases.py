"""The list "Regression cases": how each went, cases by hand or from a tried question, from a file and into one.

Parses, calls, formats: what a case may say is `case_forms`' business, how it is judged `cases`'. Its words never enter
the audit log, because the log outlives it. Stored questions and words of answers are for those who may see entries.
"""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import admin, messages
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.decorators import method_decorator
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_POST

from semcache.admin.audit import note_many
from semcache.admin.case_file import MAX_BYTES, UnreadableCases, add_lines, as_lines
from semcache.admin.case_forms import FIELDS, OF_ENTRIES, CacheCaseForm
from semcache.admin.case_words import came, why
from semcache.admin.entries import forbidden, since
from semcache.admin.words import OUTCOMES, worded
from semcache.models import CacheCase, CacheEntry
from semcache.quality import cases

# What of a change the log may show with its values: no words of anybody.
SHOWN = ("expected", "rule", "model", "tenant")


class CacheCaseAdmin(admin.ModelAdmin):
    class Media:
        css: ClassVar = {"all": ["semcache/admin.css"]}

    form = CacheCaseForm
    change_list_template = "admin/semcache/cachecase/change_list.html"
    change_form_template = "admin/semcache/cachecase/change_form.html"
    list_display = ("question_shown", "result", "reason", "expects", "last_run")
    list_filter = ("state", "expected", "rule")
    search_fields = ("question", "note")
    search_help_text = _("Words of the question or the note.")
    ordering = ("state", "id")  # failed ones first
    list_per_page = 50
    actions = ("run_again", "export_lines")

    # Who may see rules sees how cases go; who may change rules says what is expected of them.

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm("semcache.view_cacherule") or self.has_change_permission(request)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self.has_change_permission(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm("semcache.change_cacherule")

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_change_permission(request)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        shown = [name for name in FIELDS if may_read(request) or name not in OF_ENTRIES]
        return [*shown, "entry"] if self.has_change_permission(request) else shown

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """A tried question, with the stored question of the entry that the page named."""
        initial: dict[str, Any] = {**super().get_changeform_initial_data(request)}
        entry = initial.pop("entry", "")
        if may_read(request) and entry.isdecimal() and len(entry) < 19:
            found = CacheEntry.objects.filter(pk=entry).first()
            initial |= {"entry": entry, "stored_question": found.question} if found else {}
        return initial

    @admin.display(description=_("question"))
    def question_shown(self, case: CacheCase) -> str:
        asked_as = " · ".join(part for part in (case.owner, case.tenant, case.model) if part)
        return f"{case.question[:100]} ({asked_as})" if asked_as else case.question[:100]

    @admin.display(description=_("expected"), ordering="expected")
    def expects(self, case: CacheCase) -> str:
        return f"{case.get_expected_display()} · {case.rule}" if case.rule else case.get_expected_display()

    @admin.display(description=_("state"), ordering="state")
    def result(self, case: CacheCase) -> SafeString:
        return format_html('<span class="state {}">{}</span>', case.state, case.get_state_display())

    @admin.display(description=_("why"))
    def reason(self, case: CacheCase) -> str:
        return f"{why(case)} ({came(case)})" if case.problems else worded(OUTCOMES, case.got_outcome)

    @admin.display(description=_("last run"), ordering="ran_at")
    def last_run(self, case: CacheCase) -> str:
        return since(case.ran_at)

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        due = CacheCase.objects.filter(rules_key="").count()
        return super().changelist_view(request, (extra_context or {}) | {"num_due": due})

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **named: Any
    ) -> HttpResponse:
        case: CacheCase | None = named.get("obj")
        known = {} if case is None else {"why": why(case), "came": came(case), "ran": since(case.ran_at)}
        return super().render_change_form(request, context | known, *args, **named)

    def save_model(self, request: HttpRequest, obj: CacheCase, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        transaction.on_commit(send, robust=True)

    def construct_change_message(  # type: ignore[override]
        self, request: HttpRequest, form: Any, formsets: Any, add: bool = False
    ) -> str:
        return f"added: expects {form.instance.expected}" if add else changed(form)

    @admin.action(description=_("Run again"), permissions=["change"])
    def run_again(self, request: HttpRequest, queryset: QuerySet[CacheCase]) -> None:
        run_again(request, list(queryset.values_list("pk", flat=True)))

    @admin.action(description=_("Export as JSON lines"))
    def export_lines(self, request: HttpRequest, queryset: QuerySet[CacheCase]) -> HttpResponse | None:
        if not may_read(request):
            return forbidden()
        note_many(request, CacheCase, f"exported {queryset.count()}")
        response = HttpResponse(as_lines(queryset.order_by("pk")), content_type="application/jsonl")
        response["Content-Disposition"] = 'attachment; filename="cases.jsonl"'
        return response

    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        own = [
            path("import/", wrap(self.import_view), name="semcache_import_cases"),
            path("run/", wrap(self.run_view), name="semcache_run_cases"),
        ]
        return own + super().get_urls()

    @method_decorator(require_POST)
    def run_view(self, request: HttpRequest) -> HttpResponse:
        if not self.has_change_permission(request):
            return forbidden()
        run_again(request, None)
        return HttpResponseRedirect(reverse("admin:semcache_cachecase_changelist"))

    @method_decorator(require_http_methods(["GET", "POST"]))
    def import_view(self, request: HttpRequest) -> HttpResponse:
        """GET asks for a file, POST takes it whole or not at all."""
        if not (self.has_change_permission(request) and may_read(request)):
            return forbidden()
        problem = ""
        if request.method == "POST":
            try:
                self._add(request, _content(request))
                return HttpResponseRedirect(reverse("admin:semcache_cachecase_changelist"))
            except UnreadableCases as error:
                problem = str(error)
        context = self.admin_site.each_context(request) | {
            "title": _("Import cases"), "opts": self.opts, "problem": problem, "fields": ", ".join(FIELDS),
        }  # fmt: skip
        return TemplateResponse(request, "admin/semcache/cachecase/import.html", context)

    def _add(self, request: HttpRequest, content: bytes) -> None:
        with transaction.atomic():
            added = add_lines(content)
            num = len(added.cases)
            note_many(request, CacheCase, f"imported {num}, known {added.num_known}")
            transaction.on_commit(send, robust=True)
        messages.success(
            request,
            _("Added: %(added)d; there already: %(known)d.") % {"added": num, "known": added.num_known},
        )


def _content(request: HttpRequest) -> bytes:
    file: Any = request.FILES.get("file")
    if file is None:
        raise UnreadableCases(0, _("Choose a file."))
    content: bytes = file.read(MAX_BYTES + 1)
    return content


def may_read(request: HttpRequest) -> bool:
    """Whether stored questions and answers are for this person."""
    return request.user.has_perm("semcache.view_cacheentry")


def changed(form: CacheCaseForm) -> str:
    """For the log: what changed, and its values where they are nobody's words."""
    told = []
    for name in form.changed_data:
        values = f": {form.initial.get(name, '')} -> {form.cleaned_data[name]}" if name in SHOWN else ""
        told.append(f"{name}{values}")
    return "; ".join(told)


def run_again(request: HttpRequest, ids: list[int] | None) -> int:
    """By a worker, which is told; how many."""
    with transaction.atomic():
        num = cases.mark_due(ids)
        transaction.on_commit(send, robust=True)
    said = ngettext(
        "%d case is run again; reload this page.", "%d cases are run again; reload this page.", num
    )
    messages.info(request, said % num)
    return num


def send() -> None:
    """To a worker at once. Where no broker can be reached, the schedule's next run finds them."""
    # Here, because a project without celery has the other pages.
    from semcache.tasks import run_cases

    run_cases.delay()
