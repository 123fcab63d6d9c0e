"""The message field: input methods, keys, double sends, drafts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.people import let_in
from tests.e2e.tab import Tab
from tests.livesite import LiveSite

pytestmark = pytest.mark.browser

# Chrome says isComposing; Safari has ended the composition already and only the key code tells.
CONFIRMING_ENTERS = ({"isComposing": True}, {"keyCode": 229})


@pytest.mark.parametrize("enter", CONFIRMING_ENTERS, ids=lambda enter: next(iter(enter)))
def test_enter_that_confirms_a_candidate_sends_nothing(tab: Tab, enter: dict[str, object]) -> None:
    tab.page.fill("#message", "你好")
    tab.page.evaluate(
        "init => document.querySelector('#message').dispatchEvent("
        "new KeyboardEvent('keydown', {key: 'Enter', bubbles: true, cancelable: true, ...init}))",
        enter,
    )
    assert tab.page.input_value("#message") == "你好"
    expect(tab.page.locator("article")).to_have_count(0)
    tab.page.press("#message", "Enter")
    tab.wait_for_end()
    expect(tab.page.locator("article.question")).to_have_count(1)
    assert tab.answer_text == "You said: 你好 (1 word)"


def test_a_real_composition_keeps_its_text_until_enter(tab: Tab) -> None:
    tab.page.focus("#message")
    session = tab.page.context.new_cdp_session(tab.page)
    session.send("Input.imeSetComposition", {"text": "nihao", "selectionStart": 5, "selectionEnd": 5})
    tab.page.keyboard.press("Enter")
    expect(tab.page.locator("article")).to_have_count(0)
    session.send("Input.insertText", {"text": "你好"})
    assert "你好" in tab.page.input_value("#message")


def test_shift_enter_is_a_new_line_and_blanks_are_not_sent(tab: Tab) -> None:
    page = tab.page
    page.fill("#message", "   ")
    page.press("#message", "Enter")
    expect(page.locator("article")).to_have_count(0)
    page.fill("#message", "one")
    page.press("#message", "Shift+Enter")
    page.keyboard.type("two")
    assert page.input_value("#message") == "one\ntwo"
    page.press("#message", "Control+Enter")
    tab.wait_for_end()
    assert tab.stored()["messages"][0]["text"] == "one\ntwo"


def test_enter_while_an_answer_is_written_keeps_the_text(tab: Tab) -> None:
    tab.ask_script(tokens=200, delay_ms=30)
    expect(tab.stop_button).to_be_enabled()
    tab.ask("and another thing")
    assert tab.page.input_value("#message") == "and another thing"
    expect(tab.page.locator("#composer-hint")).to_contain_text("your text stays here")
    expect(tab.page.locator("article.question")).to_have_count(1)
    tab.stop_button.click()
    tab.wait_for_end()
    assert tab.page.input_value("#message") == "and another thing"


def test_three_quick_enters_send_once(tab: Tab) -> None:
    tab.page.fill("#message", "only once")
    for _ in range(3):
        tab.page.press("#message", "Enter")
    tab.wait_for_end()
    assert len(tab.stored()["messages"]) == 2


def test_a_draft_outlives_a_reload(tab: Tab) -> None:
    tab.page.fill("#message", "half a thought")
    tab.page.reload()
    expect(tab.page.locator("#message")).to_have_value("half a thought")


def test_enter_is_a_new_line_on_touch_screens(
    site: LiveSite, browser: Browser, sessions: Iterator[str]
) -> None:
    context = browser.new_context(
        has_touch=True, is_mobile=True, viewport={"width": 390, "height": 800}, locale="en-GB"
    )
    let_in(context, site, next(sessions))
    tab = Tab(context.new_page(), site.url)
    page = tab.page
    tab.open()
    page.fill("#message", "one")
    page.press("#message", "Enter")
    assert page.input_value("#message") == "one\n"
    page.get_by_role("button", name="Send").click()
    tab.wait_for_end()
    page.get_by_role("button", name="Chats").click()
    expect(page.locator("#conversations li")).to_have_count(1)
    page.locator("#rail").get_by_role("link", name="New chat").click()
    expect(page.locator("#rail")).not_to_be_visible()
    assert tab.faults() == []
    context.close()


def test_the_page_speaks_chinese_when_asked(tab: Tab) -> None:
    tab.page.get_by_role("button", name="Settings").click()
    tab.page.get_by_role("radio", name="中文").click(force=True)
    expect(tab.page.locator("html")).to_have_attribute("lang", "zh-hans")
    expect(tab.page.locator(".empty h2")).to_contain_text("想了解些什么")
    expect(tab.page.locator("#message")).to_have_attribute("placeholder", "想问什么")


def test_the_colours_chosen_stay(tab: Tab) -> None:
    tab.page.get_by_role("button", name="Settings").click()
    tab.page.get_by_role("radio", name="Dark").check(force=True)
    tab.page.get_by_role("radio", name="Large", exact=True).check(force=True)
    assert tab.page.evaluate("getComputedStyle(document.documentElement).fontSize") == "18px"
    paper = tab.page.evaluate("getComputedStyle(document.body).backgroundColor")
    tab.page.reload()
    assert tab.page.evaluate("getComputedStyle(document.body).backgroundColor") == paper == "rgb(25, 24, 22)"
    assert tab.page.evaluate("getComputedStyle(document.documentElement).fontSize") == "18px"
