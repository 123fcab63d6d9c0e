"""The page for those who hear it, and for input methods: names said once, old words not read aloud, keys that are the
input method's own."""

from __future__ import annotations

import re
from typing import Any, Literal

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.e2e.tab import Tab
from tests.e2e.test_accessible import faults

pytestmark = pytest.mark.browser


def heard(page: Page) -> list[dict[str, Any]]:
    """What assistive technology is given: role, name and description of everything that is not ignored."""
    nodes = page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")["nodes"]
    texts = ("role", "name", "description")
    return [
        {key: node.get(key, {}).get("value", "") for key in texts} for node in nodes if not node["ignored"]
    ]


def test_every_control_has_a_name_and_none_is_said_twice(tab: Tab) -> None:
    page = tab.page
    tab.ask("hello")
    tab.wait_for_end()
    page.locator("#corner").get_by_role("button", name=re.compile("^This chat")).click()
    page.get_by_text("More about how it answers").click()
    controls = [
        node for node in heard(page) if node["role"] in ("button", "textbox", "link", "radio", "checkbox")
    ]
    assert len(controls) > 20
    assert [node for node in controls if not node["name"]] == []
    assert [node for node in controls if node["name"] == node["description"]] == []
    hinted = {node["name"]: node["description"] for node in controls if node["role"] == "textbox"}
    assert hinted["Temperature"].startswith("How freely it chooses its words")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_sheets_pass_axe(tab: Tab, scheme: Literal["light", "dark"]) -> None:
    page = tab.page
    page.emulate_media(color_scheme=scheme)
    page.get_by_role("button", name="Temporary chat").click()
    page.get_by_role("button", name="Templates").click()
    assert faults(page) == []
    page.get_by_role("option", name="All templates").click()
    page.get_by_role("button", name="New template").click()
    page.get_by_role("button", name="Save").click()
    assert faults(page) == []
    page.get_by_role("button", name="This chat").click()
    page.get_by_text("More about how it answers").click()
    page.get_by_label("Temperature").fill("7")
    expect(page.get_by_text("Please give a number from 0 to 2.")).to_be_visible()
    assert faults(page) == []
    page.get_by_role("button", name="Settings").click()
    page.locator("summary").click()
    assert faults(page) == []
    page.get_by_role("dialog").get_by_role("button", name="Shortcuts").click()
    assert faults(page) == []


def test_what_was_said_before_is_not_read_aloud_when_a_chat_is_opened(
    tab: Tab, person: BrowserContext
) -> None:
    page, log = tab.page, tab.page.get_by_role("log")
    expect(log).to_have_attribute("aria-live", "off")
    tab.ask("hello")
    expect(log).to_have_attribute("aria-live", "polite")
    tab.wait_for_end()
    expect(page.get_by_role("status").filter(has_text="Answer complete")).to_have_count(1)
    page.reload()
    expect(page.locator("article.answer")).to_have_count(1)
    expect(log).to_have_attribute("aria-live", "off")


def test_escape_that_gives_up_a_candidate_stops_nothing_and_closes_nothing(tab: Tab) -> None:
    page = tab.page
    tab.ask_script(tokens=300, delay_ms=30)
    expect(tab.stop_button).to_be_enabled()
    page.focus("#message")
    compose(page, "nihao")
    escape = "init => document.activeElement.dispatchEvent("
    escape += "new KeyboardEvent('keydown', {key: 'Escape', bubbles: true, ...init}))"
    for init in ({"isComposing": True}, {"keyCode": 229}):
        page.evaluate(escape, init)
    page.wait_for_timeout(300)
    expect(tab.stop_button).to_be_enabled()
    page.locator("#corner").get_by_role("button", name=re.compile("^This chat")).click()
    prompt = page.get_by_label("What the model is told first")
    prompt.focus()
    compose(page, "jianduan")
    for init in ({"isComposing": True}, {"keyCode": 229}):
        page.evaluate(escape, init)
    expect(prompt).to_be_visible()
    page.context.new_cdp_session(page).send("Input.insertText", {"text": "简短"})
    assert prompt.input_value() == "简短"
    page.keyboard.press("Escape")
    expect(prompt).to_have_count(0)
    page.focus("#message")
    page.keyboard.press("Escape")
    tab.wait_for_end()
    expect(tab.answer).to_contain_text("Stopped")


def compose(page: Page, letters: str) -> None:
    end = len(letters)
    page.context.new_cdp_session(page).send(
        "Input.imeSetComposition", {"text": letters, "selectionStart": end, "selectionEnd": end}
    )
