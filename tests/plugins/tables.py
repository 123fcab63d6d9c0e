"""What a test does to this process's database, and so the order in which tests must come."""

from __future__ import annotations

from enum import IntEnum

import pytest


class Tables(IntEnum):
    """Tests in a transaction come before those that empty the tables, as pytest-django has put them."""

    ROLLED_BACK = 0
    EMPTIED = 1
    LEFT_ALONE = 2


def use_of_tables(item: pytest.Item) -> Tables:
    fixtures = getattr(item, "fixturenames", ())
    marker = item.get_closest_marker("django_db")
    if "transactional_db" in fixtures or (marker and marker.kwargs.get("transaction")):
        return Tables.EMPTIED
    return Tables.ROLLED_BACK if marker or "db" in fixtures else Tables.LEFT_ALONE
