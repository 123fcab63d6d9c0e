"""Generated requests for every operation: the answers are those of the document. `make comply` asks many more."""

from __future__ import annotations

from pathlib import Path

import httpx2
import pytest

from chatsite.api import api
from tests.comply.fuzz import fuzz
from tests.livesite import LiveSite

FEW = ("--phases", "examples,fuzzing", "--max-examples", "4", "--no-shrink")


@pytest.mark.parametrize("door", ["v1", "api"])
def test_generated_requests_are_answered_as_documented(
    site: LiveSite, key: str, staff: httpx2.Client, models: tuple[str, str], tmp_path: Path, door: str
) -> None:
    headers = {"Authorization": f"Bearer {key}"} if door == "v1" else session_headers(staff)
    only = ("--include-path-regex", f"^/{door}/")
    fuzzed = fuzz(api.get_openapi_schema(), site.url, headers, models, (*only, *FEW), tmp_path)
    assert fuzzed.status == 0, fuzzed.output
    assert site.engine.poll() is None and site.web.poll() is None


def session_headers(browser: httpx2.Client) -> dict[str, str]:
    cookies = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
    return {"Cookie": cookies, "X-CSRFToken": browser.cookies["csrftoken"]}
