"""A hundred generated requests for every operation, and what is at the edges of each parameter."""

from __future__ import annotations

from pathlib import Path

import pytest

from chatsite.api import api
from tests.comply.fuzz import DOORS, fuzz
from tests.livesite import LiveSite

MANY = ("--phases", "examples,coverage,fuzzing", "--max-examples", "100")


@pytest.mark.parametrize("door", DOORS)
def test_a_hundred_requests_for_every_operation(
    site: LiveSite, headers: dict[str, dict[str, str]], models: tuple[str, str], tmp_path: Path, door: str
) -> None:
    document = api.get_openapi_schema()
    fuzzed = fuzz(document, site.url, headers[door], models, (*DOORS[door], *MANY), tmp_path)
    print(fuzzed.output)
    assert fuzzed.status == 0, fuzzed.output
    assert site.engine.poll() is None and site.web.poll() is None
