"""5,000 combinations of parameters and 4,000 malformed bodies."""

from __future__ import annotations

from tests.comply.bad_requests import combinations, malformed
from tests.comply.test_bad_requests import check
from tests.livesite import LiveSite


async def test_five_thousand_combinations_of_parameters(
    site: LiveSite, key: str, models: tuple[str, str]
) -> None:
    await check(site, key, models, combinations, 5000)


async def test_four_thousand_malformed_bodies(site: LiveSite, key: str, models: tuple[str, str]) -> None:
    await check(site, key, models, malformed, 4000)
