"""The budget of wrong answers on the rules' pages: figures in the list, a panel at each rule, and a way back.

Parses, calls, formats: what counts as evidence is `budget`'s, what was saved is `hours`'.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib import admin, messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST

from semcache import service
from semcache.admin import pictures as budget_picture
from semcache.admin.entries import forbidden
from semcache.admin.pictures import Course, HourBar
from semcache.models import CacheRule
from semcache.quality import budget, hours
from semcache.quality.budget import Evidence, Kind, Tightened
from semcache.quality.hours import Tally

BADGES = {Tightened.VERIFY: _("second opinion"), Tightened.EXACT: _("exact only")}
SHOWN_HOURS = 48
LISTED_HOURS = 24
WEEK_HOURS = 24 * budget.DAYS


@dataclass(frozen=True, slots=True)
class Panel:
    """What a rule's page tells of its budget; `counts` are (what, how many, how many of them wrong)."""

    week: Tally
    time_saved: str
    evidence: Evidence
    counts: tuple[tuple[Any, int, int], ...]
    course: Course | None
    bars: list[HourBar]
    checked_now: float


def panel(rule: CacheRule) -> Panel:
    verdicts = budget.verdicts(rule.pk)
    last_week = [tally for _hour, tally in hours.last_hours(rule.pk, WEEK_HOURS)]
    week = Tally()
    for tally in last_week:
        week.add(tally)
    is_calm = rule.pk in budget.calm_rules()
    return Panel(
        week=week,
        time_saved=shown_time(week.ms_saved),
        evidence=budget.evidence([rule.pk])[rule.pk],
        counts=tuple(
            (kind.label, len(said), sum(said))
            for kind in Kind
            for said in [[is_wrong for one, is_wrong in verdicts if one == kind]]
        ),
        course=budget_picture.course(
            [is_wrong for kind, is_wrong in verdicts if kind == Kind.SAMPLED], rule.wrong_share
        ),
        bars=budget_picture.bars(last_week[-SHOWN_HOURS:]),
        checked_now=budget.share_checked(rule.check_share, is_calm=is_calm),
    )


class BudgetPages(admin.ModelAdmin):
    """What a rule did and how much of it was wrong, for the admin of rules."""

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """The list with the evidence against each of its rules and the hours of its last day, read at once."""
        shown = super().get_changelist_instance(request)
        listed = [rule.pk for rule in shown.result_list]
        found, days = budget.evidence(listed), hours.last_hours_of(listed, LISTED_HOURS)
        for rule in shown.result_list:
            rule.evidence = found.get(rule.pk, budget.NO_EVIDENCE)
            rule.day = [tally for _hour, tally in days[rule.pk]]
        return shown

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> Any:
        rule = context["original"]
        told = {"budget": panel(rule)} if isinstance(rule, CacheRule) else {}
        return super().render_change_form(request, context | told, *args, **kwargs)

    @admin.display(description=_("hit rate, 24 h"))
    def hit_rate(self, rule: Any) -> str:
        """With the day's course: look-ups and, in front of them, hits."""
        if not rule.look_count:
            return "–"
        share = ((rule.exact_count or 0) + (rule.semantic_count or 0)) / rule.look_count
        course = {"share": f"{share:.0%}", "bars": budget_picture.bars(rule.day)}
        return render_to_string("admin/semcache/cacherule/day.html", course)

    @admin.display(description=_("tokens and time saved, 30 d"), ordering="token_count")
    def saved(self, rule: Any) -> str:
        return f"{rule.token_count} · {shown_time(rule.ms_count)}" if rule.token_count else "–"

    @admin.display(description=_("wrong"))
    def wrong(self, rule: Any) -> SafeString:
        """The estimate by those checked with its interval, then what people called wrong; a badge when tightened."""
        sampled, reported = rule.evidence.sampled, rule.evidence.reported
        said = [f"{sampled.share:.1%} ({sampled.low:.1%} – {sampled.high:.1%})"] if sampled.num else []
        said += [f"{reported.num_wrong} / {reported.num}"] if reported.num_wrong else []
        badge = (
            format_html('<strong class="badge">{}</strong> ', BADGES[rule.tightened])
            if rule.tightened
            else ""
        )
        return format_html("{}{}", badge, " · ".join(said) or "–")


@require_POST
def loosen_view(request: HttpRequest, rule_id: int, pages: admin.ModelAdmin) -> HttpResponse:
    """Take back that a rule has tightened itself."""
    rule = get_object_or_404(CacheRule, pk=rule_id)
    if not pages.has_change_permission(request, rule):
        return forbidden()
    with transaction.atomic():
        is_done = budget.loosen(rule.pk)
        if is_done:
            pages.log_change(request, rule, f"tightened: {rule.tightened} -> no")
    service.forget_rules()
    if is_done:
        messages.success(request, _("Loosened. What was found before no longer counts."))
    return HttpResponseRedirect(reverse("admin:semcache_cacherule_change", args=[rule.pk]))


def shown_time(ms: float) -> str:
    """In the largest unit of which there is at least one: 5,400,000 -> "1.5 h"."""
    for size, unit in ((3_600_000, _("h")), (60_000, _("min"))):
        if ms >= size:
            return f"{ms / size:.1f} {unit}"
    return f"{ms / 1000:.0f} s"
