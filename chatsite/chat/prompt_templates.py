"""Prompt templates: texts with variables that begin a message. A person's own, and everybody's, which staff keeps.

A variable is written `{{name}}`. Synchronous: callers go through `run_in_db`. Knows rows, no HTTP.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from django.db.models import F, Q, QuerySet

from chatsite.accounts.callers import is_signed_in_staff
from chatsite.chat.models import PromptTemplate
from chatsite.chat.texts import checked
from chatsite.chat.turn import Caller
from chatsite.errors import InvalidRequest, NotFound, StaffOnly

MAX_OWN = 200
MAX_LISTED = 500
_VARIABLE = re.compile(r"\{\{\s*(\w{1,40})\s*\}\}")


def variables_of(body: str) -> list[str]:
    """The names in it, each once, in the order in which they first come."""
    return list(dict.fromkeys(_VARIABLE.findall(body)))


def filled(body: str, values: Mapping[str, str]) -> tuple[str, list[str]]:
    """The text with its variables filled in, and the names that were not given, which stay as they are."""
    text = _VARIABLE.sub(lambda found: values.get(found[1], found[0]), body)
    return text, [name for name in variables_of(body) if name not in values]


def listed(caller: Caller, language: str, *, only_starters: bool) -> list[PromptTemplate]:
    """The caller's and everybody's, the most used ones first."""
    rows = _visible(caller)
    if language:
        rows = rows.filter(language=checked(language, "language"))
    if only_starters:
        rows = rows.filter(is_starter=True)
    return list(rows.order_by("-use_count", "title", "pk")[:MAX_LISTED])


def find(caller: Caller, pk: int) -> PromptTemplate:
    """One that the caller sees. Raises NotFound."""
    return _found(_visible(caller), pk)


def make(caller: Caller, columns: dict[str, Any], *, is_shared: bool) -> PromptTemplate:
    """Raises StaffOnly for everybody's, and InvalidRequest for one too many."""
    if is_shared:
        _check_staff(caller)
    elif PromptTemplate.objects.filter(owner=caller.user_id).count() >= MAX_OWN:
        raise InvalidRequest(f"There are {MAX_OWN} templates already; erase one first.")
    return PromptTemplate.objects.create(owner_id=None if is_shared else caller.user_id, **columns)


def change(caller: Caller, pk: int, columns: dict[str, Any]) -> PromptTemplate:
    """Changes the given fields. Raises NotFound and StaffOnly."""
    row = _to_change(caller, pk)
    for name, value in columns.items():
        setattr(row, name, value)
    row.save(update_fields=list(columns))
    return row


def erase(caller: Caller, pk: int) -> None:
    """Raises NotFound and StaffOnly."""
    _to_change(caller, pk).delete()


def use(caller: Caller, pk: int, values: Mapping[str, str]) -> tuple[str, list[str]]:
    """Counts a use; the text with its variables filled in, and the names that are missing. Raises NotFound."""
    row = find(caller, pk)
    PromptTemplate.objects.filter(pk=pk).update(use_count=F("use_count") + 1)
    return filled(row.body, values)


def _visible(caller: Caller) -> QuerySet[PromptTemplate]:
    return PromptTemplate.objects.filter(Q(owner=caller.user_id) | Q(owner__isnull=True))


def _found(rows: QuerySet[PromptTemplate], pk: int) -> PromptTemplate:
    row = rows.filter(pk=pk).first()
    if row is None:
        raise NotFound("there is no such template.")
    return row


def _to_change(caller: Caller, pk: int) -> PromptTemplate:
    row = find(caller, pk)
    if row.owner_id is None:
        _check_staff(caller)
    return row


def _check_staff(caller: Caller) -> None:
    if not is_signed_in_staff(caller):
        raise StaffOnly("Only signed-in staff changes what everybody sees.")
