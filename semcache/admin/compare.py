"""The page that shows a stored answer beside what the model says now, with the words in which they differ.

Parses, calls, formats: a worker has the answer made (`comparisons`), and the page looks again until it has ended.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib import messages
from django.contrib.admin import AdminSite
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from semcache.admin.forms import TryQuestionForm
from semcache.admin.words import worded
from semcache.lending import WhyNot
from semcache.models import CacheComparison, CacheRule
from semcache.quality import comparisons
from semcache.quality.comparisons import NoSuchAnswer, StillMaking, Wanted
from semcache.text.difference import Difference, difference
from semcache.text.refusals import is_refusal

# Who sees stored questions and answers in the browser of entries sees them here.
PERMISSIONS = ("semcache.view_cacherule", "semcache.view_cacheentry")
# A worker that is there takes it at once.
LONG = timedelta(seconds=30)

TROUBLES: dict[str, Any] = {
    WhyNot.AWAY: _("The engine cannot be reached. Try again when it is there."),
    WhyNot.BUSY: _("The engine has too much to do now. Try again later."),
    WhyNot.OTHER_MODEL: _("The engine serves another model by now. Test the question again."),
    WhyNot.REFUSED: _("The engine does not take this question; it may be too long for the model."),
    WhyNot.TOO_LATE: _("The answer took too long and was given up."),
    comparisons.NOT_TAKEN: _("No worker took it. Is one running?"),
    comparisons.DIED: _("The worker that had it made has ended. Try again."),
    comparisons.FAILED: _("It failed; the worker's log says why."),
    comparisons.EMPTY: _("The model said nothing."),
    comparisons.CUT_OFF: _("The answer is not whole, so nothing was compared."),
}
NO_SUCH_ANSWER = _("The stored answer is not there any more.")
STILL_MAKING = _("Your last comparison has not ended yet; wait for it.")


class CompareForm(TryQuestionForm):
    """The question as it was tried, and the stored answer that is compared."""

    entry = forms.IntegerField(min_value=1, max_value=2**63 - 1)

    def wanted(self) -> Wanted:
        return wanted(self.cleaned_data)


@dataclass(frozen=True, slots=True)
class Shown:
    """A comparison for the page. `difference` is None where there is nothing to mark."""

    row: CacheComparison
    difference: Difference | None
    trouble: str
    is_refusal: bool
    waits_long: bool

    @property
    def is_open(self) -> bool:
        return self.row.state in comparisons.OPEN


def wanted(values: dict[str, Any]) -> Wanted:
    """What the form of a trial says is put to the model."""
    return Wanted(values["text"], values["tenant"], values["owner"], values["model"])


def begin(request: HttpRequest, asked: Wanted, entry_id: int) -> CacheComparison:
    """A comparison for a worker, which is told. Raises NoSuchAnswer and StillMaking."""
    with transaction.atomic():
        begun = comparisons.begin(asked, entry_id, str(request.user.pk))
        transaction.on_commit(_send, robust=True)
    return begun


def compare_view(site: AdminSite, request: HttpRequest) -> HttpResponse:
    """Begins one and leads to its page."""
    if not request.user.has_perms(PERMISSIONS):
        return _forbidden()
    form = CompareForm(request.POST)
    if not form.is_valid():
        return HttpResponse(form.errors.as_text(), status=400, content_type="text/plain; charset=utf-8")
    try:
        begun = begin(request, form.wanted(), form.cleaned_data["entry"])
    except NoSuchAnswer:
        messages.error(request, NO_SUCH_ANSWER)
        return HttpResponseRedirect(_trial_of(form.wanted()))
    except StillMaking:
        messages.warning(request, STILL_MAKING)
        begun = CacheComparison.objects.filter(author=str(request.user.pk)).latest("pk")
    return HttpResponseRedirect(reverse("admin:semcache_comparison", args=[begun.pk]))


def comparison_view(site: AdminSite, request: HttpRequest, comparison_id: int) -> HttpResponse:
    """As far as it is; looks again by itself until it has ended."""
    if not request.user.has_perms(PERMISSIONS):
        return _forbidden()
    row = CacheComparison.objects.filter(pk=comparison_id).first()
    if row is None:
        raise Http404
    asked = Wanted(row.question, row.tenant, row.owner, row.model)
    context = site.each_context(request) | {
        "title": _("Compare with the model"), "opts": CacheRule._meta, "shown": shown(row), "back": _trial_of(asked),
    }  # fmt: skip
    return TemplateResponse(request, "admin/semcache/cacherule/compare.html", context)


def shown(row: CacheComparison) -> Shown:
    return Shown(
        row,
        difference(row.stored_answer, row.made) if row.made else None,
        worded(TROUBLES, row.trouble) if row.trouble else "",
        bool(row.made) and is_refusal(row.made),
        row.state == CacheComparison.State.WAITING and timezone.now() - row.created_at > LONG,
    )


def _send() -> None:
    """To a worker at once. Where no broker can be reached, the schedule's next run finds it."""
    # Here, because a project without celery has the other pages.
    from semcache.tasks import make_comparisons

    make_comparisons.delay()


def _trial_of(asked: Wanted) -> str:
    values = {"text": asked.text, "tenant": asked.tenant, "owner": asked.owner, "model": asked.model}
    return f"{reverse('admin:semcache_try_question')}?{urlencode(values)}"


def _forbidden() -> HttpResponse:
    return HttpResponse(_("You may not do this."), status=403, content_type="text/plain; charset=utf-8")
