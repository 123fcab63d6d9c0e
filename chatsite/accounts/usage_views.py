"""`/usage`: what one used, and for staff what everybody did; pages of the server's own, without scripts of theirs.

Doors: parse, ask `ledger.report`, show.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from chatsite.accounts.ledger import report
from chatsite.accounts.ledger.booking import AGAIN
from chatsite.accounts.ledger.report import Line, Scope, Sums
from chatsite.accounts.models import User
from chatsite.accounts.usage_chart import Chart, chart
from chatsite.chat.models import Origin

SPANS = (7, 30, 90)
DEFAULT_SPAN = 30
LEAST_SHOWN = Decimal("0.0001")
MAX_LINES = 500
OWN_TABLES = ("model", "key", "origin")
STAFF_TABLES = ("tenant", "user", "key", "model")


@require_safe
@login_required
def own(request: HttpRequest) -> HttpResponse:
    """One's own usage."""
    assert isinstance(request.user, User)
    return _page(request, OWN_TABLES, user=request.user.pk)


@require_safe
@login_required
def everybody(request: HttpRequest) -> HttpResponse:
    """By business line, user, key and model. For staff; for others there is nothing here."""
    if not request.user.is_staff:
        raise Http404
    return _page(request, STAFF_TABLES)


def _page(request: HttpRequest, tables: Sequence[str], user: int | None = None) -> HttpResponse:
    days = _span(request.GET.get("days", ""))
    scope = Scope(report.first_day(days), user=user)
    by_day = report.usage(scope, ["day"])
    context = {
        "days": days,
        "spans": SPANS,
        "is_of_all": user is None,
        "first_day": scope.since,
        "last_day": scope.since + timedelta(days=days - 1),
        "totals": _together(report.totals(by_day)),
        "costs": [_costs(sums) for sums in report.totals(by_day) if sums.currency],
        "chart": _chart(scope, days, by_day),
        "tables": [_table(scope, name) for name in tables],
    }
    return render(request, "accounts/usage.html", context)


def _span(asked: str) -> int:
    return next((days for days in SPANS if asked == str(days)), DEFAULT_SPAN)


def _together(totals: Sequence[Sums]) -> Sums:
    """Counts over all currencies; the costs of it mean nothing."""
    together = Sums()
    for sums in totals:
        together.add(sums)
    return together


def _chart(scope: Scope, days: int, by_day: Sequence[Line]) -> Chart:
    labels = [(scope.since + timedelta(days=number)).isoformat() for number in range(days)]
    found: dict[str, Sums] = {}
    for line in by_day:
        found.setdefault(line.group["day"], Sums()).add(line.sums)
    of_days = [found.get(label, Sums()) for label in labels]
    return chart(
        labels,
        {
            "generated": [sums.generated_tokens for sums in of_days],
            "prefilled": [sums.prefilled_tokens for sums in of_days],
            "reused": [sums.reused_tokens for sums in of_days],
        },
    )


def _table(scope: Scope, name: str) -> dict[str, Any]:
    lines = report.usage(scope, [name])
    shown = [
        {"name": _name(name, line.group[name]), "sums": line.sums} | _costs(line.sums)
        for line in lines[:MAX_LINES]
    ]
    return {"title": _titles()[name], "lines": shown, "num_left_out": max(0, len(lines) - MAX_LINES)}


def _costs(sums: Sums) -> dict[str, str]:
    """What it cost and what the cache saved, in words of money; nothing where no price was set."""
    if not sums.currency:
        return {}
    return {"cost": _money(sums.cost, sums.currency), "saved": _money(sums.saved_cost, sums.currency)}


def _money(amount: Decimal, currency: str) -> str:
    """As many places as single answers need; what is less is not nothing."""
    if 0 < amount < LEAST_SHOWN:
        return f"< {LEAST_SHOWN} {currency}"
    return f"{amount:,.4f} {currency}" if amount else f"0 {currency}"


def _titles() -> dict[str, str]:
    return {
        "model": _("By model"),
        "key": _("By API key"),
        "origin": _("By where answers came from"),
        "tenant": _("By business line"),
        "user": _("By user"),
    }


def _name(table: str, name: str) -> str:
    """What a line is called: people, keys and models by their names, origins in words."""
    if table == "origin":
        return _origins().get(name, name) or _("none")
    return name or _nameless(table)


def _origins() -> dict[str, str]:
    return {
        Origin.MODEL: _("The model"),
        Origin.EXACT: _("Cache, same question"),
        Origin.SEMANTIC: _("Cache, similar question"),
        AGAIN: _("The model, for the cache"),
    }


def _nameless(name: str) -> str:
    """What no name stands for: no key was used, the person left or there was none, no model was asked."""
    return {"key": _("In the browser"), "user": _("Nobody, or a person who left")}.get(name, _("none"))
