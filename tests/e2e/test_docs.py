"""The page of the API's documentation: drawn from local files, under the site's own strict policy."""

from __future__ import annotations

import pytest
from playwright.sync_api import BrowserContext, expect

from tests.e2e.tab import Tab
from tests.livesite import LiveSite

pytestmark = pytest.mark.browser


def test_the_docs_show_both_doors_and_ask_no_other_host(site: LiveSite, person: BrowserContext) -> None:
    tab = Tab(person.new_page(), site.url)
    response = tab.page.goto(f"{site.url}/api/docs")
    assert response is not None
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
    expect(tab.page.get_by_role("heading", level=1)).to_contain_text("Rill")
    expect(tab.page.locator("#operations-chat-list_conversations")).to_be_visible()
    chat = tab.page.locator("[id='operations-OpenAI-compatible-create_chat_completion']")
    chat.locator(".opblock-summary-control").click()
    expect(chat.locator(".opblock-body")).to_contain_text("What is the capital of France?")
    tab.page.evaluate("() => document.fonts.ready")
    assert tab.faults() == []
