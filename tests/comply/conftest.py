"""One live site for all outside checks: a key for `/v1`, a signed-in member of staff for `/api`."""

from __future__ import annotations

from collections.abc import Iterator

import httpx2
import pytest

from tests.livesite import LiveSite, live_site
from tests.site.conftest import make_person, sign_in

STAFF = "boss"


@pytest.fixture(scope="package")
def site() -> Iterator[LiveSite]:
    # Hundreds of requests at once and one after the other are one person's here.
    with live_site("comply", CHAT_MAX_LIVE_PER_USER="1000", SEMCACHE_BUDGET_MS="5000") as running:
        yield running


@pytest.fixture(scope="package")
def key(site: LiveSite) -> str:
    return site.key("ann", "chat", "embeddings", "usage")


@pytest.fixture(scope="package")
def staff(site: LiveSite) -> Iterator[httpx2.Client]:
    make_person(site, STAFF, is_staff=True, is_superuser=True)
    browser = sign_in(site, STAFF)
    yield browser
    browser.close()


@pytest.fixture(scope="package")
def headers(site: LiveSite, key: str, staff: httpx2.Client) -> dict[str, dict[str, str]]:
    """What generated requests bring, by the door they are for."""
    cookies = "; ".join(f"{name}={value}" for name, value in staff.cookies.items())
    staff_key = site.key(STAFF, "chat", "embeddings", "usage", "cache-admin")
    return {
        "v1": {"Authorization": f"Bearer {key}"},
        "api": {"Authorization": f"Bearer {staff_key}"},
        "session": {"Cookie": cookies, "X-CSRFToken": staff.cookies["csrftoken"]},
    }


@pytest.fixture(scope="package")
def http(site: LiveSite, key: str) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=site.url, headers={"Authorization": f"Bearer {key}"}, timeout=60) as plain:
        yield plain


@pytest.fixture(scope="package")
def models(http: httpx2.Client) -> tuple[str, str]:
    """The names of the chat model and of the embedder."""
    chat, embedder = (model["id"] for model in http.get("/v1/models").json()["data"])
    return chat, embedder
