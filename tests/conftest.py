"""What every test shares: how property tests choose their examples, and in which order folders are run."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

from tests.patience import PATIENCE_S
from tests.plugins.tables import use_of_tables

settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("local", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") == "true" else "local")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The tests of a folder stay together, so that its site or engine starts once; their order within stays random.

    Tests in a transaction still come before those that empty the tables, as pytest-django has put them.
    """
    first_seen: dict[tuple[int, str], int] = {}
    groups = {item: (use_of_tables(item), str(item.path.parent)) for item in items}
    for place, item in enumerate(items):
        first_seen.setdefault(groups[item], place)
    items.sort(key=lambda item: (groups[item][0], first_seen[groups[item]]))


def pytest_configure() -> None:
    """In this process nobody is turned away because the machine is busy: connections are waited for."""
    from django.conf import settings as site  # the plugin that starts the servers has told it where they are

    site.DATABASES["default"]["OPTIONS"]["pool"]["timeout"] = PATIENCE_S
