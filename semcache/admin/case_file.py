"""Regression cases as JSON lines, so that they can be kept in a repository and brought in again.

A file holds what is asked and expected, not how it went. It is taken whole or not at all; cases that are there already
are passed over, so that the same file can be brought in again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from semcache.admin.case_forms import FIELDS, CacheCaseForm
from semcache.models import CacheCase

MAX_BYTES = 2_000_000


class UnreadableCases(Exception):
    """The file is refused; says the line and why, in words."""

    def __init__(self, line: int, why: Any) -> None:
        super().__init__((_("Line %d: ") % line if line else "") + str(why))


@dataclass(frozen=True, slots=True)
class Added:
    """`num_known` were there already."""

    cases: tuple[CacheCase, ...]
    num_known: int


def as_lines(cases: Iterable[CacheCase]) -> str:
    """One case a line, without what is empty."""
    return "".join(json.dumps(_told(case), ensure_ascii=False) + "\n" for case in cases)


@transaction.atomic
def add_lines(content: bytes) -> Added:
    """Raises UnreadableCases, with nothing added."""
    added, num_known = [], 0
    for number, told in _rows(content):
        form = CacheCaseForm(told)
        if form.is_valid():
            added.append(form.save())
        elif form.has_error("__all__", "unique"):
            num_known += 1
        else:
            name, errors = next(iter(form.errors.items()))
            raise UnreadableCases(number, f"{name}: {' '.join(map(str, errors))}")
    return Added(tuple(added), num_known)


def _rows(content: bytes) -> Iterable[tuple[int, dict[str, str]]]:
    if len(content) > MAX_BYTES:
        raise UnreadableCases(0, _("The file is too large."))
    try:
        lines = content.decode("utf-8-sig").split("\n")
    except UnicodeDecodeError:
        raise UnreadableCases(0, _("The file is not UTF-8.")) from None
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield number, _row(number, line)


def _row(number: int, line: str) -> dict[str, str]:
    try:
        told: Any = json.loads(line)
    except (ValueError, RecursionError):
        raise UnreadableCases(number, _("no JSON")) from None
    if not isinstance(told, dict) or not all(isinstance(value, str) for value in told.values()):
        raise UnreadableCases(number, _("an object of texts is expected"))
    if unknown := sorted(set(told) - set(FIELDS)):
        raise UnreadableCases(number, _("unknown: %s") % ", ".join(unknown))
    return told


def _told(case: CacheCase) -> dict[str, str]:
    return {name: value for name in FIELDS if (value := getattr(case, name))}
