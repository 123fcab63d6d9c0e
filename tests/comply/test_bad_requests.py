"""Bad requests at /v1 in great number: each is told what is wrong, none is a mistake of the server, nothing restarts.

Some hundreds here; `make comply` sends 5,000 combinations of parameters and 4,000 malformed bodies.
"""

from __future__ import annotations

from collections.abc import Callable

import httpx2
import pytest

from tests.comply.bad_requests import combinations, malformed, send_all
from tests.livesite import LiveSite

NUM_OF_EACH = 300


@pytest.mark.parametrize("kind", [combinations, malformed])
async def test_bad_requests_harm_only_themselves(
    site: LiveSite, key: str, models: tuple[str, str], kind: Callable
) -> None:
    """AP-04, AP-06."""
    await check(site, key, models, kind, NUM_OF_EACH)


async def check(site: LiveSite, key: str, models: tuple[str, str], kind: Callable, count: int) -> None:
    outcome = await send_all(site.url, key, kind(count, models))
    assert not outcome.wrong, "\n".join(outcome.wrong[:10])
    assert outcome.statuses.total() == count
    assert {200, 400} <= set(outcome.statuses), "all went wrong, or nothing did"
    assert site.engine.poll() is None and site.web.poll() is None
    metrics = httpx2.get(f"{site.url}/metrics").text
    assert "\nrill_core_restarts_total 0.0\n" in metrics
    print(f"{kind.__name__}: {dict(outcome.statuses)}")
