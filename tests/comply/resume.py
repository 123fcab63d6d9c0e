"""A pytest plugin: `--resume` goes on with a run that was broken off, without what passed in it.

A run over an hour may meet a machine that is taken away. What passed is kept in a file by the names of the tests; a run
without the option begins anew. Knows no test.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.livesite import PROJECT

PASSED = PROJECT / ".venv-comply" / "passed"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--resume", action="store_true", help="leave out what passed in the run before")
    parser.addoption("--passed", type=Path, default=PASSED, help="where the names of passed tests are kept")


def pytest_configure(config: pytest.Config) -> None:
    is_worker = hasattr(config, "workerinput")
    if not is_worker and not config.option.resume:
        config.option.passed.unlink(missing_ok=True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    passed = _passed(config)
    done = [item for item in items if item.nodeid in passed]
    config.hook.pytest_deselected(items=done)
    items[:] = [item for item in items if item.nodeid not in passed]


class _Keeper:
    """Writes each name down at once: whatever comes next may be the end."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            with self._file.open("a") as names:
                names.write(f"{report.nodeid}\n")


def pytest_sessionstart(session: pytest.Session) -> None:
    if not hasattr(session.config, "workerinput"):
        session.config.pluginmanager.register(_Keeper(session.config.option.passed))


def _passed(config: pytest.Config) -> set[str]:
    file = config.option.passed
    return set(file.read_text().splitlines()) if file.exists() else set()
