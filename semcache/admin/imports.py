"""The page "Import answers": a file is looked through and shown before anything is stored; below, what was begun.

Parses, calls, formats: what a file says is `import_file`'s business, which rows are taken `import_rows`', and a worker
stores them (`imports`). Between preview and import the rows travel in the page, so that the server keeps nothing.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import Any

from asgiref.sync import async_to_sync
from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.admin import AdminSite
from django.core.exceptions import ValidationError
from django.core.files.uploadedfile import UploadedFile
from django.db import transaction
from django.db.models import Count
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.defaultfilters import filesizeformat
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _now
from django.utils.translation import gettext_lazy as _

from semcache.admin.audit import note_row
from semcache.admin.words import PRIVATE, worded
from semcache.imports import batches as imports
from semcache.imports.file import MAX_ROWS, Row, Trouble, UnreadableFile, read_rows
from semcache.imports.rows import Judged, NobodyToAsk, Refusal, Terms, judged
from semcache.lending import lent
from semcache.models import CacheEntry, CacheImport, CacheRule
from semcache.text.normalize import clean

NUM_SHOWN = 20
NUM_REFUSED_SHOWN = 200
NUM_IMPORTS_SHOWN = 20

TROUBLES: dict[Trouble, Any] = {
    Trouble.EMPTY: _("The file holds no rows."),
    Trouble.NOT_UTF8: _("The file is not UTF-8. Save it as “CSV UTF-8”, not as GBK or UTF-16."),
    Trouble.NO_COLUMNS: _("The first row of a CSV file must name the columns question and answer."),
    Trouble.BROKEN_CSV: _("The quotation marks of the CSV file do not match."),
    Trouble.TOO_MANY_ROWS: _("The file has more than %d rows.") % MAX_ROWS,
}
REFUSALS: dict[Refusal, Any] = {
    Refusal.EMPTY: _("no question or no answer"),
    Refusal.TOO_LONG: _("too long"),
    Refusal.TWICE: _("the same question stands above"),
    Refusal.STORED: _("an answer to it is stored already"),
    Refusal.OTHER_RULE: _("another rule decides"),
    Refusal.OF_THIS_MOMENT: _("the answer is right for this moment only"),
    Refusal.NOT_SHARED: _("such a question is its asker's own"),
    Refusal.PERSONAL: _("personal data in the answer"),
}


class ImportForm(forms.Form):
    """For which questions the answers are."""

    rule = forms.ModelChoiceField(
        CacheRule.objects.filter(is_enabled=True).exclude(mode="off").exclude(sharing="private"),
        label=_("Rule"),
        help_text=_("One that shares its answers; the answers end with its time to live."),
    )
    tenant = forms.CharField(
        label=_("Business line"), max_length=64, required=False,
        help_text=_("As the entries name it, such as 1. Needed where the rule shares within a business line."),
    )  # fmt: skip
    system_prompt = forms.CharField(
        label=_("System prompt"), max_length=50_000, required=False, strip=False,
        help_text=_("The answers are for chats with exactly this one; empty is a new chat without any."),
        widget=forms.Textarea(attrs={"rows": 3, "cols": 80}),
    )  # fmt: skip
    may_name_people = forms.BooleanField(
        label=_("What looks like personal data in the answers is meant for everybody"), required=False
    )

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        rule = values.get("rule")
        if rule is not None and rule.tenant:
            values["tenant"] = rule.tenant
        if rule is not None and rule.sharing == "tenant" and not values.get("tenant"):
            self.add_error("tenant", _("This rule shares within a business line: say which."))
        return values

    def terms(self) -> Terms:
        values = self.cleaned_data
        return Terms(values["rule"].pk, values["tenant"], values["system_prompt"], values["may_name_people"])


class FileForm(ImportForm):
    """With a file, which is read as it comes in."""

    file = forms.FileField(label=_("File"))

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.fields["file"].help_text = _(
            "CSV or JSON lines in UTF-8 with question and answer, up to %(rows)d rows and %(size)s. Larger files: "
            "manage.py cache_import."
        ) % {"rows": MAX_ROWS, "size": filesizeformat(max_bytes())}

    def clean_file(self) -> tuple[str, list[Row]]:
        file: UploadedFile = self.cleaned_data["file"]
        if (file.size or 0) > max_bytes():
            raise ValidationError(_("The file is too large for this page."))
        try:
            rows = read_rows(file.read())
        except UnreadableFile as problem:
            where = _now("Line %d: ") % problem.line if problem.line else ""
            raise ValidationError(where + worded(TROUBLES, problem.trouble)) from None
        return str(file.name), rows


class RowsForm(ImportForm):
    """With the rows that the preview showed, as the page carries them."""

    file_name = forms.CharField(max_length=200)
    rows = forms.JSONField()

    def clean_rows(self) -> list[Row]:
        try:
            return [
                Row(line, question, answer)
                for line, question, answer in self.cleaned_data["rows"]
                if isinstance(question, str) and isinstance(answer, str)
            ]
        except (TypeError, ValueError):
            raise ValidationError(_("The rows are not those of the preview.")) from None


@dataclass(frozen=True, slots=True)
class Shown:
    """A row of the file; `why` it is not taken, in words, or ""."""

    row: Row
    why: str


@dataclass(frozen=True, slots=True)
class Preview:
    """What would be stored. `reasons` are (why, how many), `carried` is what the page sends back."""

    file_name: str
    num_rows: int
    num_accepted: int
    shown: tuple[Shown, ...]
    refused: tuple[Shown, ...]
    reasons: tuple[tuple[str, int], ...]
    carried: str
    problem: str = ""


def max_bytes() -> int:
    """Of a file on this page: as text it travels back in a form, a little longer."""
    return int((settings.DATA_UPLOAD_MAX_MEMORY_SIZE or 50_000_000) // 2)


def import_view(site: AdminSite, request: HttpRequest) -> HttpResponse:
    """GET asks for a file or watches what was begun, POST with a file shows what it holds, POST with rows begins."""
    if not request.user.has_perm("semcache.add_cacheentry"):
        return HttpResponse(_("You may not do this."), status=403, content_type="text/plain; charset=utf-8")
    if "rows" in request.POST:
        return _begin(site, request, RowsForm(request.POST))
    if "watch" in request.GET:
        return _page(site, request, None)
    form = FileForm(request.POST or None, request.FILES or None)
    if not form.is_valid():
        return _page(site, request, form)
    name, rows = form.cleaned_data["file"]
    found = judged_by(rows, form)
    preview = _preview(name, found, form.cleaned_data["rule"]) if found else None
    return _page(site, request, form, preview)


def _begin(site: AdminSite, request: HttpRequest, form: RowsForm) -> HttpResponse:
    found = judged_by(form.cleaned_data["rows"], form) if form.is_valid() else None
    if not found:
        return _page(site, request, form)
    preview = _preview(form.cleaned_data["file_name"], found, form.cleaned_data["rule"])
    if preview.problem:
        return _page(site, request, form, preview)
    begin(request, preview.file_name, found, form)
    messages.success(request, _("The import has begun."))
    return HttpResponseRedirect(f"{request.path}?watch=1")


def begin(request: HttpRequest, file_name: str, found: list[Judged], form: ImportForm) -> CacheImport:
    """An import of the rows that were not refused, for a worker."""
    with transaction.atomic():
        begun = imports.start(file_name, found, form.terms())
        said = f"import of {begun.file_name}: {begun.num_rows} rows, {begun.num_refused} refused"
        note_row(request, begun.rule, said)
        transaction.on_commit(_send, robust=True)
    return begun


def _send() -> None:
    """To a worker at once. Where no broker can be reached, the schedule's next run finds it."""
    # Here, because a project without celery has the other pages.
    from semcache.tasks import store_imports

    store_imports.delay()


def judged_by(rows: list[Row], form: ImportForm) -> list[Judged] | None:
    """None, with the reason at the form, while nobody can be asked."""
    try:
        return async_to_sync(judged)(rows, form.terms(), with_vectors=False)
    except (NobodyToAsk, OSError):
        form.add_error(None, _("The engine does not say what it serves; try again when it is there."))
        return None


def _preview(name: str, found: list[Judged], rule: CacheRule) -> Preview:
    refused = [one for one in found if one.why is not None]
    counted = Counter(worded(REFUSALS, one.why) for one in refused)
    return Preview(
        file_name=name,
        num_rows=len(found),
        num_accepted=len(found) - len(refused),
        shown=tuple(map(_shown, found[:NUM_SHOWN])),
        refused=tuple(map(_shown, refused[:NUM_REFUSED_SHOWN])),
        reasons=tuple(counted.most_common()),
        carried=_carried(found),
        problem=problem(len(found) - len(refused), rule),
    )


def _shown(one: Judged) -> Shown:
    if one.why is None:
        return Shown(one.row, "")
    words = worded(REFUSALS, one.why)
    about = worded(PRIVATE, one.about) if one.why is Refusal.NOT_SHARED else one.about
    return Shown(one.row, f"{words}: {about}" if about else words)


def problem(num_accepted: int, rule: CacheRule) -> str:
    """Why so many rows can't be imported, in words; "" where they can."""
    num_stored = rule.entries.count()
    if num_accepted == 0:
        return _now("No row can be imported.")
    if num_stored + num_accepted > rule.capacity:
        return _now("The rule keeps %(capacity)d answers and holds %(stored)d: raise its capacity first.") % {
            "capacity": rule.capacity,
            "stored": num_stored,
        }
    return ""


def _carried(found: list[Judged]) -> str:
    rows = [[one.row.line, clean(one.row.question), clean(one.row.answer)] for one in found]
    return json.dumps(rows, ensure_ascii=False)


def _page(
    site: AdminSite, request: HttpRequest, form: ImportForm | None, preview: Preview | None = None
) -> HttpResponse:
    begun = CacheImport.objects.select_related("rule").defer("rows").order_by("-id")[:NUM_IMPORTS_SHOWN]
    context = site.each_context(request) | {
        "title": _("Import answers"), "opts": CacheRule._meta, "form": form, "preview": preview,
        "imports": begun,
        "is_moving": form is None and any(one.state in imports.UNFINISHED for one in begun),
        "revisions": _revisions(),
    }  # fmt: skip
    return TemplateResponse(request, "admin/semcache/cacherule/import.html", context)


def _revisions() -> list[dict[str, Any]]:
    """Imported answers by the model that they were brought in for; `is_served` where it is the one that answers now."""
    counted = (
        CacheEntry.objects.filter(source=CacheEntry.Source.IMPORT)
        .values("rule_id", "rule__name", "model_revision")
        .annotate(num=Count("pk"))
        .order_by("rule__name", "model_revision")
    )
    asked = async_to_sync(lent)("", "", "") if counted else None
    current = None if asked is None else asked.question.model_revision
    return [row | {"is_served": current is None or row["model_revision"] == current} for row in counted]
