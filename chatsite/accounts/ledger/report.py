"""Reports of the ledger: what was used since a day, by day, model, key, origin, kind, and for staff by whom.

Finished days come from the roll-up, younger rows from the records; together they are everything, once. Knows sums and
names; knows no form in which they are shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db.models import Count, F, Q, QuerySet, Sum
from django.db.models.functions import TruncDate

from chatsite.accounts.ledger import rollup
from chatsite.accounts.ledger.booking import AGAIN
from chatsite.accounts.models import ApiKey, Tenant, UsageDay, UsageRecord, User
from chatsite.chat.models import Origin

# What rows can be grouped by, and the column that tells.
OWN_GROUPS = {"day": "on", "model": "model", "key": "api_key_id", "origin": "origin", "kind": "kind"}
ALL_GROUPS = OWN_GROUPS | {"tenant": "tenant_id", "user": "user_id"}
# Answers that came from the cache, or from somebody who asked the same at that moment.
HITS = Q(origin__in=(Origin.EXACT, Origin.SEMANTIC))
ANSWERS = Q(kind=UsageRecord.Kind.ANSWER) & ~Q(origin=AGAIN)
EMBEDDINGS = Q(kind=UsageRecord.Kind.EMBEDDING)


@dataclass(slots=True)
class Sums:
    """`answers` are those that somebody asked for; costs are in `currency`."""

    currency: str = ""
    answers: int = 0
    cache_hits: int = 0
    embeddings: int = 0
    prompt_tokens: int = 0
    reused_tokens: int = 0
    prefilled_tokens: int = 0
    generated_tokens: int = 0
    block_seconds: float = 0.0
    device_seconds: float = 0.0
    cost: Decimal = Decimal(0)
    saved_tokens: int = 0
    saved_ms: float = 0.0
    saved_cost: Decimal = Decimal(0)

    def add(self, other: Sums) -> None:
        for name in MEASURES:
            setattr(self, name, getattr(self, name) + getattr(other, name))


MEASURES = tuple(name for name in Sums.__dataclass_fields__ if name != "currency")


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose usage, from which day (UTC) on. None: everybody's."""

    since: date
    user: int | None = None
    tenant: int | None = None

    def of(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        if self.user is not None:
            rows = rows.filter(user_id=self.user)
        return rows if self.tenant is None else rows.filter(tenant_id=self.tenant)


@dataclass(frozen=True, slots=True)
class Line:
    """Sums of one group; `group` names it as people do: a key by its prefix, erased users and sessions by ""."""

    group: dict[str, str]
    sums: Sums = field(default_factory=Sums)


def first_day(days: int) -> date:
    """The first of so many days (UTC) of which today is the last."""
    return datetime.now(UTC).date() - timedelta(days=days - 1)


def usage(scope: Scope, group_by: Sequence[str]) -> list[Line]:
    """Days newest first, within them the costliest and busiest first. One line per group and currency."""
    columns = [ALL_GROUPS[name] for name in group_by]
    found: dict[tuple[Any, ...], Sums] = {}
    rolled = rollup.last_rolled()  # once: a day that is rolled up meanwhile must not count twice
    for row in [*_rolled(scope, columns, rolled), *_young(scope, columns, rolled)]:
        key = tuple(row[column] for column in (*columns, "currency"))
        found.setdefault(key, Sums(row["currency"])).add(_sums_of(row))
    names = _names(group_by, found)
    lines = [
        Line({name: names[name].get(value, "") for name, value in zip(group_by, key, strict=False)}, sums)
        for key, sums in found.items()
    ]
    lines.sort(key=lambda line: (*line.group.values(), line.sums.currency))
    lines.sort(key=lambda line: (line.sums.cost, _work(line.sums)), reverse=True)
    return sorted(lines, key=lambda line: line.group.get("day", ""), reverse=True)


def totals(lines: Iterable[Line]) -> list[Sums]:
    """One for each currency."""
    found: dict[str, Sums] = {}
    for line in lines:
        found.setdefault(line.sums.currency, Sums(line.sums.currency)).add(line.sums)
    return [found[currency] for currency in sorted(found)]


def _rolled(scope: Scope, columns: Sequence[str], rolled: date | None) -> Iterable[dict[str, Any]]:
    if rolled is None:
        return []
    days = scope.of(UsageDay.objects.filter(day__gte=scope.since, day__lte=rolled)).annotate(on=F("day"))
    return _summed(days, columns, lambda which: Sum("answers", filter=which, default=0))


def _young(scope: Scope, columns: Sequence[str], rolled: date | None) -> Iterable[dict[str, Any]]:
    since = scope.since if rolled is None else max(scope.since, rolled + timedelta(days=1))
    records = scope.of(UsageRecord.objects.filter(created_at__gte=rollup.start_of(since)))
    records = records.annotate(on=TruncDate("created_at", tzinfo=UTC))
    return _summed(records, columns, lambda which: Count("pk", filter=which))


def _summed(rows: QuerySet[Any], columns: Sequence[str], counted: Any) -> Iterable[dict[str, Any]]:
    summed: QuerySet[Any, dict[str, Any]] = (
        rows.order_by()
        .values(*columns, "currency")
        .annotate(
            num_answers=counted(ANSWERS),
            num_hits=counted(ANSWERS & HITS),
            num_embeddings=counted(EMBEDDINGS),
            **{f"sum_{name}": Sum(name) for name in rollup.SUMS},
        )
    )
    return summed


def _sums_of(row: dict[str, Any]) -> Sums:
    return Sums(
        row["currency"],
        row["num_answers"],
        row["num_hits"],
        row["num_embeddings"],
        **{name: row[f"sum_{name}"] for name in rollup.SUMS},
    )


def _names(group_by: Sequence[str], keys: Iterable[tuple[Any, ...]]) -> dict[str, dict[Any, str]]:
    """Of every group its values' names."""
    values = {name: {key[place] for key in keys} for place, name in enumerate(group_by)}
    return {name: _NAMED.get(name, _as_they_are)(found) for name, found in values.items()}


def _as_they_are(values: set[Any]) -> dict[Any, str]:
    return {value: str(value) for value in values}


def _keys(values: set[Any]) -> dict[Any, str]:
    rows = ApiKey.objects.filter(pk__in=values - {None}).values_list("pk", "prefix", "name")
    return {pk: f"{prefix} {name}" for pk, prefix, name in rows}


def _tenants(values: set[Any]) -> dict[Any, str]:
    return dict(Tenant.objects.filter(pk__in=values).values_list("pk", "slug"))


def _users(values: set[Any]) -> dict[Any, str]:
    return dict(User.objects.filter(pk__in=values - {None}).values_list("pk", "username"))


_NAMED = {"key": _keys, "tenant": _tenants, "user": _users}


def _work(sums: Sums) -> int:
    return sums.prefilled_tokens + sums.generated_tokens
