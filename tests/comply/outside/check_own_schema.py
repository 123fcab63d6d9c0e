"""A hundred generated requests for every operation, and what is at the edges of each parameter."""

from __future__ import annotations

from pathlib import Path

import httpx2
import pytest

from chatsite.api import api
from tests.comply.fuzz import fuzz
from tests.comply.test_own_schema import session_headers
from tests.livesite import LiveSite

MANY = ("--phases", "examples,coverage,fuzzing", "--max-examples", "100")


@pytest.mark.parametrize("door", ["v1", "api"])
def test_a_hundred_requests_for_every_operation(
    site: LiveSite, key: str, staff: httpx2.Client, models: tuple[str, str], tmp_path: Path, door: str
) -> None:
    headers = {"Authorization": f"Bearer {key}"} if door == "v1" else session_headers(staff)
    only = ("--include-path-regex", f"^/{door}/")
    fuzzed = fuzz(api.get_openapi_schema(), site.url, headers, models, (*only, *MANY), tmp_path)
    assert fuzzed.status == 0, fuzzed.output
    assert site.engine.poll() is None and site.web.poll() is None
    print(fuzzed.output)
