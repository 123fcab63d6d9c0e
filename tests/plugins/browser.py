"""Browser tests where there is no browser: skipped with a loud line, or failed where `CI=true` promises one."""

from __future__ import annotations

import os
import shutil

import pytest

MISSING = "Chromium is not installed (apt-get install chromium, or set CHROMIUM to its path)"


def chromium() -> str | None:
    """The path of the browser, or None where there is none."""
    names = (os.environ.get("CHROMIUM", ""), "chromium", "chromium-browser", "google-chrome")
    return next((path for name in names if name and (path := shutil.which(name))), None)


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("browser") is None or chromium() is not None:
        return
    if os.environ.get("CI") == "true":
        pytest.fail(MISSING, pytrace=False)
    pytest.skip(MISSING)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    num_skipped = sum(MISSING in str(report.longrepr) for report in terminalreporter.stats.get("skipped", ()))
    if num_skipped:
        terminalreporter.section("browser tests did NOT run", red=True, bold=True)
        terminalreporter.line(f"{num_skipped} tests of the page were skipped: {MISSING}", red=True)
