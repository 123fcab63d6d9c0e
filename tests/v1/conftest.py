"""One live site for all tests of the OpenAI-compatible door, and a key for it."""

from __future__ import annotations

from collections.abc import Iterator

import httpx2
import openai
import pytest

from tests.livesite import LiveSite, live_site
from tests.patience import PATIENCE_S


@pytest.fixture(scope="package")
def site() -> Iterator[LiveSite]:
    # A busy machine must not turn hits into misses.
    with live_site("v1", SEMCACHE_BUDGET_MS="5000") as running:
        yield running


@pytest.fixture(scope="package")
def key(site: LiveSite) -> str:
    return site.key("ann")


@pytest.fixture
def client(site: LiveSite, key: str) -> Iterator[openai.OpenAI]:
    """The official client, unmodified, without its own retries."""
    with openai.OpenAI(base_url=f"{site.url}/v1", api_key=key, max_retries=0) as official:
        yield official


@pytest.fixture
def http(site: LiveSite, key: str) -> Iterator[httpx2.Client]:
    with httpx2.Client(
        base_url=site.url, headers={"Authorization": f"Bearer {key}"}, timeout=PATIENCE_S
    ) as plain:
        yield plain


@pytest.fixture(scope="package")
def model(site: LiveSite, key: str) -> str:
    """The name of the served chat model."""
    with openai.OpenAI(base_url=f"{site.url}/v1", api_key=key) as official:
        return official.models.list().data[0].id


@pytest.fixture(scope="package")
def embedder(site: LiveSite, key: str) -> str:
    """The name of the served embedding model."""
    with openai.OpenAI(base_url=f"{site.url}/v1", api_key=key) as official:
        return official.models.list().data[1].id
