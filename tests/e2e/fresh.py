"""One browser context for many tests: what a test left is gone afterwards, but files under their version are kept.

In a context of its own each test would fetch more than a hundred modules again: a quarter of what a page's load costs.
Knows what a context can hold. Those with options of their own are made and closed by their test.
"""

from __future__ import annotations

from playwright.sync_api import Browser, BrowserContext

from tests.patience import PATIENCE_S

# All that the browser's protocol can clear, but for its cache of files.
STORED = "cookies,file_systems,indexeddb,local_storage,websql,service_workers,cache_storage"
EVERYWHERE = "*"


def new_context(browser: Browser) -> BrowserContext:
    context = browser.new_context(viewport={"width": 1200, "height": 800}, locale="en-GB")
    context.set_default_timeout(PATIENCE_S * 1000)
    return context


def forget(context: BrowserContext) -> None:
    """Closes every page, then clears what they left: a page that goes may still write its draft."""
    last = context.new_page()
    for page in context.pages:
        if page is not last:
            page.close()
    context.unroute_all()
    context.set_offline(False)
    context.clear_permissions()
    context.clear_cookies()
    context.new_cdp_session(last).send(
        "Storage.clearDataForOrigin", {"origin": EVERYWHERE, "storageTypes": STORED}
    )
    last.close()
