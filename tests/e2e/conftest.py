"""The real site, a real browser, and tabs that notice every error, dialog and foreign request."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext

from tests.e2e.tab import Tab, launched_browser
from tests.livesite import LiveSite, live_site

NUM_PEOPLE = 40
# Doors have brakes, which a run of many tests would meet: people with open sessions are made at once.
MAKE_SESSIONS = f"""
from importlib import import_module
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from chatsite.accounts.models import User
for number in range({NUM_PEOPLE}):
    user = User.objects.create_user(f"person{{number}}")
    session = import_module(settings.SESSION_ENGINE).SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.create()
    print("session", session.session_key)
"""


@pytest.fixture(scope="session")
def site() -> Iterator[LiveSite]:
    with live_site("e2e", CHAT_COALESCE_MS="30") as running:
        yield running


@pytest.fixture(scope="session")
def sessions(site: LiveSite) -> Iterator[str]:
    """Session keys, each of a person of their own."""
    lines = site.manage("shell", "--verbosity", "0", "--command", MAKE_SESSIONS).splitlines()
    return iter([line.split()[1] for line in lines if line.startswith("session ")])


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
    context.add_cookies([{"name": "sessionid", "value": next(sessions), "url": site.url}])
    return context


@pytest.fixture
def tab(site: LiveSite, person: BrowserContext) -> Iterator[Tab]:
    """A tab at an empty chat, which must have no faults in the end."""
    tab = Tab(person.new_page(), site.url)
    tab.open()
    yield tab
    assert tab.faults() == []
