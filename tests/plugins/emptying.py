"""Tables are emptied between tests by deleting what is in them.

Django truncates, which makes new files for every table and index: 200 to 500 ms here, where a test leaves three rows
that can be deleted in ten. Like a TRUNCATE it waits for whoever still writes. Needs a superuser, which the servers of a
test run give; with another server's ordinary user Django's own way stays.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pytest

# Deleted rows stay in their pages, so now and then the pages go, too.
TRUNCATE_EVERY = 100


def pytest_configure(config: pytest.Config) -> None:
    from django.db.backends.postgresql.operations import DatabaseOperations  # too early before

    numbers, truncate = itertools.count(1), DatabaseOperations.sql_flush

    def sql_flush(self: Any, style: Any, tables: Sequence[str], **options: Any) -> list[str]:
        if not tables or not next(numbers) % TRUNCATE_EVERY or not _is_superuser(self.connection):
            return list(truncate(self, style, tables, **options))
        return _deleting([self.quote_name(table) for table in tables])

    DatabaseOperations.sql_flush = sql_flush  # type: ignore[method-assign]


def _deleting(tables: Sequence[str]) -> list[str]:
    return [
        f"LOCK TABLE {', '.join(tables)} IN ACCESS EXCLUSIVE MODE",
        # No look at foreign keys, for all tables are emptied; until the end of the transaction.
        "SET LOCAL session_replication_role = replica",
        *(f"DELETE FROM {table}" for table in tables),
    ]


def _is_superuser(connection: Any) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('is_superuser') = 'on'")
        return bool(cursor.fetchone()[0])
