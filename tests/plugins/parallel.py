"""With `-n`, the tests of a folder run in one worker: its site, engine and event loop start once.

Folders are the unit because fixtures are shared by folder; knows no test.
"""

from __future__ import annotations

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("dist", "no") == "loadgroup":
        for item in items:
            item.add_marker(pytest.mark.xdist_group(str(item.path.parent)))
