"""One live site for all outside checks: a key for `/v1`, and for generated requests somebody new each time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from uuid import uuid4

import httpx2
import pytest

from tests.comply.rows import Rows
from tests.livesite import LiveSite, live_site
from tests.patience import PATIENCE_S
from tests.site.conftest import make_person, sign_in


@pytest.fixture(scope="package")
def site() -> Iterator[LiveSite]:
    # Hundreds of requests at once and one after the other are one person's here.
    with live_site("comply", CHAT_MAX_LIVE_PER_USER="1000", SEMCACHE_BUDGET_MS="5000") as running:
        yield running


@pytest.fixture(scope="package")
def key(site: LiveSite) -> str:
    return site.key("ann", "chat", "embeddings", "usage")


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody with nothing yet: what their requests bring, by the door they are for, and who makes rows of theirs."""

    brings: dict[str, dict[str, str]]
    rows: Rows


@pytest.fixture
def caller(site: LiveSite) -> Iterator[Caller]:
    """A member of staff for one test, so that nobody before has used up what a person may have, or taken it away."""
    name = f"boss-{uuid4().hex[:8]}"
    make_person(site, name, is_staff=True, is_superuser=True)
    asks = site.key(name, "chat", "embeddings", "usage")
    may_all = site.key(name, "chat", "embeddings", "usage", "cache-admin")
    with closing(sign_in(site, name)) as browser:
        cookies = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
        brings = {
            "v1": {"Authorization": f"Bearer {asks}"},
            "api": {"Authorization": f"Bearer {may_all}"},
            "session": {"Cookie": cookies, "X-CSRFToken": browser.cookies["csrftoken"]},
        }
        rows = Rows(browser)
        rows.forget_rules()
        yield Caller(brings, rows)


@pytest.fixture(scope="package")
def http(site: LiveSite, key: str) -> Iterator[httpx2.Client]:
    with httpx2.Client(
        base_url=site.url, headers={"Authorization": f"Bearer {key}"}, timeout=PATIENCE_S
    ) as plain:
        yield plain


@pytest.fixture(scope="package")
def models(http: httpx2.Client) -> tuple[str, str]:
    """The names of the chat model and of the embedder."""
    chat, embedder = (model["id"] for model in http.get("/v1/models").json()["data"])
    return chat, embedder
