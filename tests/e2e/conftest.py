"""The real site, a real browser, and tabs that notice every error, dialog and foreign request."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext

from tests.e2e.fresh import forget, new_context
from tests.e2e.people import let_in, signed_in
from tests.e2e.tab import Tab, launched_browser
from tests.livesite import LiveSite, live_site

NUM_PEOPLE = 200  # more than there are tests


@pytest.fixture(scope="package")
def site() -> Iterator[LiveSite]:
    with live_site("e2e", SEMCACHE_BUDGET_MS="5000") as running:
        yield running


@pytest.fixture(scope="package")
def sessions(site: LiveSite) -> Iterator[str]:
    """Session keys, each of a person of their own."""
    return iter(signed_in(site, NUM_PEOPLE))


# Ends with the folder: Playwright's loop runs as long as the browser lives, and async tests need theirs.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with launched_browser() as browser:
        yield browser


@pytest.fixture(scope="package")
def shared_context(browser: Browser) -> Iterator[BrowserContext]:
    context = new_context(browser)
    yield context
    context.close()


@pytest.fixture
def context(shared_context: BrowserContext) -> Iterator[BrowserContext]:
    """A browser in which nobody has been yet."""
    yield shared_context
    forget(shared_context)


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
