"""Generated requests for every operation: the answers are those of the document. `make comply` asks many more."""

from __future__ import annotations

from pathlib import Path

import pytest

from chatsite.api import api
from tests.comply.fuzz import DOORS, fuzz
from tests.livesite import LiveSite

FEW = ("--phases", "examples,fuzzing", "--max-examples", "4", "--no-shrink")


@pytest.mark.parametrize("door", DOORS)
def test_generated_requests_are_answered_as_documented(
    site: LiveSite, headers: dict[str, dict[str, str]], models: tuple[str, str], tmp_path: Path, door: str
) -> None:
    document = api.get_openapi_schema()
    fuzzed = fuzz(document, site.url, headers[door], models, (*DOORS[door], *FEW), tmp_path)
    assert fuzzed.status == 0, fuzzed.output
    assert site.engine.poll() is None and site.web.poll() is None
