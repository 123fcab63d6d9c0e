"""The context that tests share: nothing of one is seen by the next, and what never changes is not fetched again."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.fresh import forget, new_context
from tests.livesite import LiveSite

pytestmark = pytest.mark.browser

LEAVE = """async () => {
  localStorage.left = "here";
  sessionStorage.left = "here";
  document.cookie = "left=here";
  addEventListener("pagehide", () => { localStorage.later = "here" });
  await (await caches.open("left")).put("/left", new Response("here"));
  await new Promise((opened) => {
    const request = indexedDB.open("left");
    request.onsuccess = () => opened(request.result.close());
  });
}"""
LEFT = """async () => [
  Object.keys(localStorage), Object.keys(sessionStorage), document.cookie, await caches.keys(),
  (await indexedDB.databases()).map(({ name }) => name),
  (await navigator.permissions.query({ name: "clipboard-read" })).state,
]"""
FETCHED = """() => performance.getEntriesByType("resource").filter(({ name }) => name.includes("/~"))
  .map(({ transferSize }) => transferSize)"""


def num_fetched(page: Page) -> int:
    """How many files under the running version came over the line."""
    sizes = page.evaluate(FETCHED)
    assert sizes
    return sum(size > 0 for size in sizes)


def test_what_a_test_leaves_is_gone_and_files_of_a_version_are_kept(site: LiveSite, browser: Browser) -> None:
    context = new_context(browser)
    page = context.new_page()
    page.goto(f"{site.url}/signin")
    clean = page.evaluate(LEFT)
    assert num_fetched(page) > 0
    page.evaluate(LEAVE)
    context.grant_permissions(["clipboard-read"])
    context.route("**/*", lambda route: route.abort())
    context.set_offline(True)
    assert page.evaluate(LEFT) != clean
    second = context.new_page()
    forget(context)
    assert page.is_closed() and second.is_closed() and context.pages == []
    assert context.cookies() == []
    page = context.new_page()
    page.goto(f"{site.url}/signin")
    expect(page.get_by_label("Username")).to_be_visible()
    # The page sets a cookie of its own, which scripts do not see.
    assert page.evaluate(LEFT) == clean == [[], [], "", [], [], "prompt"]
    assert num_fetched(page) == 0
    context.close()
