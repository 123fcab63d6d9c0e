"""Generated requests for every operation: the answers are those of the document. `make comply` asks many more."""

from __future__ import annotations

from pathlib import Path

import pytest

from chatsite.api import api
from tests.comply.conftest import Caller
from tests.comply.fuzz import door, fuzz
from tests.comply.served import operations, row_names, served
from tests.livesite import LiveSite

FEW = ("--phases", "examples,fuzzing", "--max-examples", "4", "--no-shrink")
# They take away what others name, and are asked one by one (outside/check_own_schema.py).
TAKING = ("DELETE ", "/bulk", "/act", "/evict", "/erase", "/exports/", "/rotate", "/order")


@pytest.mark.parametrize("way_in", ["v1", "api", "session"])
def test_generated_requests_are_answered_as_documented(
    site: LiveSite,
    caller: Caller,
    models: tuple[str, str],
    tmp_path: Path,
    way_in: str,
) -> None:
    document = api.get_openapi_schema()
    chosen = [
        operation
        for operation in operations(document)
        if door(document, operation) == way_in and not any(part in operation for part in TAKING)
    ]
    there = caller.rows.of({name for operation in chosen for name in row_names(document, operation)})
    told = served(document, chosen, models, there)
    fuzzed = fuzz(told, chosen, site.url, caller.brings[way_in], FEW, tmp_path)
    assert fuzzed.status == 0, fuzzed.output
    assert site.engine.poll() is None and site.web.poll() is None
