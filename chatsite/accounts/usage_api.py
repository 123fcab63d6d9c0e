"""`/api/usage`: what was used and what it cost, as JSON or CSV; one's own, and for staff everybody's.

One's own is for a session or a key with the scope `usage`, everybody's for staff in a session. A door: parse, ask
`ledger.report`, format.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import date
from decimal import Decimal
from typing import Annotated, Any

from django.http import HttpRequest, StreamingHttpResponse
from ninja import Field, Query, Router, Schema
from pydantic.config import JsonDict

from chatsite.accounts.auth import SESSION, SessionOrKey, caller_of
from chatsite.accounts.callers import is_signed_in_staff
from chatsite.accounts.ledger import report, spreadsheet
from chatsite.accounts.ledger.report import ALL_GROUPS, OWN_GROUPS, Line, Scope
from chatsite.accounts.models import Tenant
from chatsite.db import run_in_db
from chatsite.errors import InvalidRequest, NotFound, StaffOnly
from chatsite.openapi import refs

MAX_DAYS = 366
# More lines than a program wants in one answer; the CSV has all.
MAX_LINES = 10_000


def _pattern(known: Iterable[str]) -> JsonDict:
    """What a schema says of a list of `known` names; what is told of a wrong one is `_groups`'s."""
    name = f" *({'|'.join(known)})? *"
    return {"pattern": f"^{name}(,{name})*$"}


class Asked(Schema):
    """What every report is asked with."""

    days: Annotated[int, Field(ge=1, le=MAX_DAYS)] = Field(
        30, description="So many days (UTC), today included."
    )
    group_by: str = Field(
        "day",
        description="By what lines are told apart, comma separated: day, model, key, origin, kind.",
        json_schema_extra=_pattern(OWN_GROUPS),
    )


class AskedOfAll(Asked):
    group_by: str = Field(
        "day,tenant",
        description="By what lines are told apart, comma separated: day, model, key, origin, kind, tenant, user.",
        json_schema_extra=_pattern(ALL_GROUPS),
    )
    tenant: str = Field("", description="The slug of one business line; without it all of them.")


class SumsOut(Schema):
    """Counts and costs. Amounts are decimal numbers in texts, without rounding."""

    currency: str = Field(description="Of the amounts; empty where there was no price.", examples=["USD"])
    answers: int = Field(description="Answers that somebody asked for.", examples=[12])
    cache_hits: int = Field(description="Of these, answers that were there already.", examples=[3])
    embeddings: int = Field(description="Requests for vectors.", examples=[1])
    prompt_tokens: int = Field(examples=[9000])
    reused_tokens: int = Field(description="Prompt tokens whose KV was reused.", examples=[6000])
    prefilled_tokens: int = Field(description="Prompt tokens that were computed.", examples=[3000])
    generated_tokens: int = Field(examples=[2500])
    block_seconds: float = Field(description="KV blocks held, times seconds.", examples=[410.5])
    device_seconds: float = Field(description="Time of the device.", examples=[31.25])
    cost: Decimal = Field(description="By the prices of their moments.", examples=["0.012500000"])
    saved_tokens: int = Field(description="Tokens that the cache gave.", examples=[700])
    saved_ms: float = Field(description="What these took to make.", examples=[8100.0])
    saved_cost: Decimal = Field(description="What these would have cost.", examples=["0.003100000"])


class LineOut(SumsOut):
    """One group. Of the names only those are there that were grouped by; "" is a session, or a person who left."""

    day: date | None = None
    model: str | None = None
    key: str | None = Field(None, description="The key's beginning and its name.")
    origin: str | None = Field(None, description="model, exact, semantic; again: made anew for the cache.")
    kind: str | None = Field(None, description="answer or embedding.")


class LineOfAllOut(LineOut):
    tenant: str | None = Field(None, description="The business line's slug.")
    user: str | None = None


class TotalsOut(Schema):
    since: date = Field(description="The first day (UTC).")
    totals: list[SumsOut] = Field(description="Of all lines, in each currency.")
    is_cut: bool = Field(False, description="There are more lines; the totals count them all.")


class UsageOut(TotalsOut):
    """Lines, days newest first and then the costliest, and their totals."""

    lines: list[LineOut]


class UsageOfAllOut(TotalsOut):
    """The same for everybody."""

    lines: list[LineOfAllOut]


CSV = {
    200: {
        "description": "The lines as a table; texts that a spreadsheet might run begin with an apostrophe.",
        "content": {
            "text/csv": {
                "schema": {"type": "string"},
                "example": "day,currency,answers\r\n2026-09-21,USD,12\r\n",
            }
        },
    }
}
# The business line that is asked for may be unknown.
OF_ONE_LINE = {404: refs.response("NotFound")}
OWN = SessionOrKey("usage")

router = Router(tags=["usage"])


@router.get("/usage", response={200: UsageOut}, auth=OWN, url_name="usage", exclude_none=True)
async def usage(request: HttpRequest, asked: Query[Asked]) -> dict[str, Any]:
    """What you used, by day or by whatever else is asked."""
    return _told(*await run_in_db(_own, request, asked))


@router.get(
    "/usage.csv", auth=OWN, url_name="usage-csv", response={200: None}, openapi_extra={"responses": CSV}
)
async def usage_csv(request: HttpRequest, asked: Query[Asked]) -> StreamingHttpResponse:
    """The same as a table."""
    return _table(asked, *await run_in_db(_own, request, asked))


@router.get(
    "/usage/all",
    response={200: UsageOfAllOut},
    auth=SESSION,
    url_name="usage-all",
    exclude_none=True,
    openapi_extra={"responses": OF_ONE_LINE},
)
async def usage_of_all(request: HttpRequest, asked: Query[AskedOfAll]) -> dict[str, Any]:
    """What everybody used, also by business line and user. For staff, in a session."""
    return _told(*await run_in_db(_all, request, asked))


@router.get(
    "/usage/all.csv",
    auth=SESSION,
    url_name="usage-all-csv",
    response={200: None},
    openapi_extra={"responses": CSV | OF_ONE_LINE},
)
async def usage_of_all_csv(request: HttpRequest, asked: Query[AskedOfAll]) -> StreamingHttpResponse:
    """The same as a table."""
    return _table(asked, *await run_in_db(_all, request, asked))


def _own(request: HttpRequest, asked: Asked) -> tuple[date, list[Line]]:
    since = report.first_day(asked.days)
    return since, report.usage(Scope(since, user=caller_of(request).user_id), _groups(asked, OWN_GROUPS))


def _all(request: HttpRequest, asked: AskedOfAll) -> tuple[date, list[Line]]:
    if not is_signed_in_staff(caller_of(request)):
        raise StaffOnly("This is for staff only.")
    groups, since = _groups(asked, ALL_GROUPS), report.first_day(asked.days)
    return since, report.usage(Scope(since, tenant=_tenant(asked.tenant)), groups)


def _tenant(slug: str) -> int | None:
    if not slug:
        return None
    found = Tenant.objects.filter(slug=slug).values_list("pk", flat=True).first()
    if found is None:
        raise NotFound("There is no such business line.")
    return found


def _groups(asked: Asked, known: dict[str, str]) -> list[str]:
    """In the order in which they were asked for, each once."""
    groups = list(dict.fromkeys(name.strip() for name in asked.group_by.split(",") if name.strip()))
    if unknown := [name for name in groups if name not in known]:
        raise InvalidRequest(f"group_by can't have {unknown[0]!r:.50}; it knows {', '.join(known)}.")
    return groups


def _told(since: date, lines: Sequence[Line]) -> dict[str, Any]:
    return {
        "since": since,
        "lines": [line.group | asdict(line.sums) for line in lines[:MAX_LINES]],
        "totals": [asdict(sums) for sums in report.totals(lines)],
        "is_cut": len(lines) > MAX_LINES,
    }


def _table(asked: Asked, since: date, lines: Sequence[Line]) -> StreamingHttpResponse:
    known = ALL_GROUPS if isinstance(asked, AskedOfAll) else OWN_GROUPS
    header = [*_groups(asked, known), "currency", *report.MEASURES]
    rows = ([*line.group.values(), *asdict(line.sums).values()] for line in lines)
    return spreadsheet.response(f"usage-{since}.csv", header, rows)
