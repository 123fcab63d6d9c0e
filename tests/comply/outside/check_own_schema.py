"""A hundred generated requests for each operation, and what is at the edges of each parameter.

Each operation is a test of its own, with a person and rows of its own, so that a run can be gone on with (`--resume`)
and what one operation takes away is missed by no other.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from chatsite.api import api
from tests.comply.conftest import Caller
from tests.comply.fuzz import door, fuzz
from tests.comply.served import operations, row_names, served
from tests.livesite import LiveSite

MANY = ("--phases", "examples,coverage,fuzzing", "--max-examples", "100", "--no-shrink")


@pytest.mark.parametrize("operation", list(operations(api.get_openapi_schema())))
def test_a_hundred_requests(
    site: LiveSite,
    caller: Caller,
    models: tuple[str, str],
    tmp_path: Path,
    operation: str,
) -> None:
    document = api.get_openapi_schema()
    told = served(document, [operation], models, caller.rows.of(row_names(document, operation)))
    brings = caller.brings[door(document, operation)]
    fuzzed = fuzz(told, [operation], site.url, brings, MANY, tmp_path)
    assert fuzzed.status == 0, fuzzed.output
    assert fuzzed.was_anything_done, fuzzed.statuses
    print(f"{operation}: {dict(sorted(fuzzed.statuses.items()))}")
    assert site.engine.poll() is None and site.web.poll() is None
