"""The real site, a real browser, and tabs that notice every error, dialog and foreign request."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext

from tests.e2e.people import let_in, signed_in
from tests.e2e.tab import Tab, launched_browser
from tests.livesite import LiveSite, live_site

NUM_PEOPLE = 40


@pytest.fixture(scope="session")
def site() -> Iterator[LiveSite]:
    with live_site("e2e", SEMCACHE_BUDGET_MS="5000") as running:
        yield running


@pytest.fixture(scope="session")
def sessions(site: LiveSite) -> Iterator[str]:
    """Session keys, each of a person of their own."""
    return iter(signed_in(site, NUM_PEOPLE))


# One per module: Playwright's loop runs as long as the browser lives, and async tests need theirs.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched_browser() as browser:
        yield browser


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    context = browser.new_context(viewport={"width": 1200, "height": 800}, locale="en-GB")
    context.set_default_timeout(15_000)
    yield context
    context.close()


@pytest.fixture
def person(site: LiveSite, context: BrowserContext, sessions: Iterator[str]) -> BrowserContext:
    """A browser in which somebody new is signed in."""
    let_in(context, site, next(sessions))
    return context


@pytest.fixture
def tab(site: LiveSite, person: BrowserContext) -> Iterator[Tab]:
    """A tab at an empty chat, which must have no faults in the end."""
    tab = Tab(person.new_page(), site.url)
    tab.open()
    yield tab
    assert tab.faults() == []
