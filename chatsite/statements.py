"""Statements on the way of every answer, composed once. Django's ORM composes, compiles and unpacks them anew each
time, which costs several times as much as running them, on threads that share one interpreter with all streams.

Synchronous, in the caller's transaction. Knows no table: SQL and models are given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from django.db import connection
from django.db.models import AutoField, BigAutoField, Field, Model

Row = tuple[Any, ...]


def first(sql: str, parameters: Sequence[Any] | Mapping[str, Any]) -> Row | None:
    """The first row that `sql` gives."""
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        row: Row | None = cursor.fetchone()
    return row


def value(sql: str, parameters: Sequence[Any]) -> Any:
    """The first column of the first row; None where there is no row."""
    row = first(sql, parameters)
    return None if row is None else row[0]


def every(sql: str, parameters: Sequence[Any] | Mapping[str, Any]) -> list[Row]:
    """All rows that `sql` gives."""
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        rows: list[Row] = cursor.fetchall()
    return rows


def changed(sql: str, parameters: Sequence[Any]) -> int:
    """How many rows `sql` changed."""
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return int(cursor.rowcount)


class Insert:
    """Inserts a row of `model`. A column of `by_database` is what that SQL makes of a value that is given with the row.
    `on_conflict` ends the statement."""

    def __init__(
        self, model: type[Model], by_database: Mapping[str, str] | None = None, on_conflict: str = ""
    ) -> None:
        self._model, self._by_database, self._on_conflict = model, by_database or {}, on_conflict

    def __call__(self, row: Model, **by_database: Any) -> bool:
        """Whether it was inserted."""
        values = [
            by_database[field.name]
            if field.name in self._by_database
            else field.get_db_prep_save(getattr(row, field.attname), connection)
            for field in self._fields
        ]
        return changed(self._sql, values) == 1

    @cached_property
    def _fields(self) -> list[Field[Any, Any]]:
        """All that the database does not number itself."""
        return [
            field
            for field in self._model._meta.concrete_fields
            if not isinstance(field, AutoField | BigAutoField)
        ]

    @cached_property
    def _sql(self) -> str:
        quoted = connection.ops.quote_name
        columns = ", ".join(quoted(str(field.column)) for field in self._fields)
        places = ", ".join(self._by_database.get(field.name, "%s") for field in self._fields)
        table = quoted(self._model._meta.db_table)
        return f"INSERT INTO {table} ({columns}) VALUES ({places}) {self._on_conflict}"  # noqa: S608 - names
