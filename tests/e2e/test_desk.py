"""The sheets around the field: what a chat is set up with, chats that leave nothing, settings, quotas, lengths."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.e2e.tab import Tab, until
from tests.livesite import LiveSite

pytestmark = pytest.mark.browser


def open_setup(page: Page) -> None:
    page.locator("#corner").get_by_role("button", name=re.compile("^This chat")).click()
    expect(page.get_by_role("dialog", name="This chat")).to_be_visible()


def test_a_new_chat_begins_with_what_was_set_up_and_keeps_what_is_changed(tab: Tab) -> None:
    page = tab.page
    open_setup(page)
    page.get_by_label("What the model is told first").fill("Be brief.")
    temperature = page.get_by_label("Temperature")
    temperature.fill("7")
    temperature.blur()
    expect(page.get_by_text("Please give a number from 0 to 2.")).to_be_visible()
    expect(temperature).to_have_attribute("aria-invalid", "true")
    temperature.fill("0.2")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_role("button", name="This chat (changed)")).to_be_focused()
    tab.ask("hello")
    tab.wait_for_end()
    stored = tab.stored()
    assert (stored["system_prompt"], stored["parameters"]) == ("Be brief.", {"temperature": 0.2})
    assert stored["messages"][0]["text"] == "hello"
    open_setup(page)
    expect(temperature).to_have_value("0.2")
    page.get_by_text("More about how it answers").click()
    page.get_by_label("Stop at").fill("END\nUser:")
    expect(page.get_by_role("dialog").get_by_text("Saved.")).to_be_visible()
    assert tab.stored()["parameters"] == {"temperature": 0.2, "stop": ["END", "User:"]}
    page.get_by_role("button", name="Reset all").click()
    until(lambda: tab.stored()["parameters"] == {} and tab.stored()["system_prompt"] == "", page)


def test_what_was_set_up_without_a_line_is_sent_with_the_question_once(
    tab: Tab, person: BrowserContext
) -> None:
    page = tab.page
    person.set_offline(True)
    open_setup(page)
    page.get_by_label("What the model is told first").fill("Be brief.")
    page.keyboard.press("Escape")
    tab.ask("are you there?")
    expect(page.locator("article.question.pending")).to_be_visible()
    person.set_offline(False)
    tab.wait_for_end()
    stored = tab.stored()
    assert (stored["system_prompt"], len(stored["messages"])) == ("Be brief.", 2)
    expect(page.locator("#conversations li")).to_have_count(1)
    tab.forget_cut()


def test_a_temporary_chat_leaves_nothing_behind(tab: Tab, site: LiveSite) -> None:
    page = tab.page
    switch = page.get_by_role("button", name="Temporary chat", exact=True)
    page.fill("#message", "a draft from before")
    switch.click()
    expect(switch).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#temporary")).to_contain_text("ends when you leave this page")
    tab.ask("a secret question")
    tab.wait_for_end()
    tab.ask("and another secret")
    expect(page.locator("article.answer")).to_have_count(2)
    tab.wait_for_end()
    expect(switch).to_be_hidden()
    assert page.url == f"{site.url}/"
    expect(page.locator("#conversations li")).to_have_count(0)
    found = page.request.get(f"{site.url}/api/conversations?q=secret").json()["items"]
    kept = page.evaluate("JSON.stringify(localStorage)")
    assert (found, "secret" in kept, "draft from before" in kept) == ([], False, False)
    rows = "SELECT c.is_temporary FROM chat_message m JOIN chat_conversation c ON c.id = m.conversation_id"
    secret = f"{rows} WHERE m.text LIKE '%% secret%%' AND m.role = 'user'"
    assert site.sql(secret) == [(True,), (True,)]
    tab.new_chat()
    expect(page.locator("#temporary")).to_be_hidden()
    until(lambda: site.sql(secret) == [], page)
    switch.click()
    tab.ask("one more secret")
    tab.wait_for_end()
    page.goto("about:blank")
    until(lambda: site.sql(secret) == [], page)
    tab.open()


def test_settings_say_which_key_sends_and_a_draft_is_read_early_only_when_chosen(tab: Tab) -> None:
    page = tab.page
    frames: list[str] = []
    page.on("websocket", lambda socket: socket.on("framesent", lambda sent: frames.append(str(sent))))
    page.reload()
    tab.ask("hello")
    tab.wait_for_end()
    draft = "a question that is written slowly, word by word, "
    page.fill("#message", draft)
    page.wait_for_timeout(700)
    assert not any("draft" in frame for frame in frames)
    page.get_by_role("button", name="Settings").click()
    page.get_by_label("Read along while I type").check()
    page.get_by_role("radio", name="Ctrl or ⌘ and Enter").check()
    page.keyboard.press("Escape")
    page.focus("#message")
    page.keyboard.press("End")
    page.keyboard.type("and with care")
    until(lambda: any('"draft":"a question that is written slowly,"' in frame for frame in frames), page)
    page.keyboard.press("Enter")
    assert page.input_value("#message").endswith("and with care\n")
    page.keyboard.press("Control+Enter")
    tab.wait_for_end()
    expect(page.locator("article.question")).to_have_count(2)
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Shortcuts")).to_contain_text("New line")


def test_a_text_that_is_too_long_stays_and_says_by_how_much(tab: Tab, site: LiveSite) -> None:
    page, hint = tab.page, tab.page.locator("#composer-hint")
    limit = page.evaluate("JSON.parse(document.getElementById('boot').textContent).limits.max_message_chars")
    paste = "text => { const field = document.querySelector('#message'); field.focus(); field.value = text;"
    paste += " field.dispatchEvent(new InputEvent('input', {bubbles: true})); }"
    page.evaluate(paste, "x" * (limit - 5))
    expect(hint).to_have_text("Room for 5 more characters.")
    page.evaluate(paste, "😀" * (limit + 1234))
    expect(hint).to_contain_text("Too long by 1,234 characters.")
    expect(page.get_by_role("button", name="Send")).to_be_disabled()
    page.press("#message", "Enter")
    expect(page.locator("article")).to_have_count(0)
    assert len(page.input_value("#message")) == limit + 1234
    page.fill("#message", "short")
    expect(hint).not_to_contain_text("Too long")


def test_quotas_warn_before_they_are_used_up_and_say_when_there_is_room_again(
    tab: Tab, site: LiveSite
) -> None:
    page, banner = tab.page, tab.page.locator("#quota")
    name = page.evaluate("JSON.parse(document.getElementById('boot').textContent).user.name")
    site.sql(
        "INSERT INTO accounts_quota (applies, user_id, window_s, max_requests) VALUES ('user', %s, 86400, 5)",
        site.user(name),
    )
    for number in range(1, 6):
        tab.ask(f"question {number}")
        expect(page.locator("article.answer")).to_have_count(number)
        tab.wait_for_end()
        if number == 3:
            expect(banner).to_be_hidden()
        if number == 4:
            expect(banner).to_contain_text(re.compile(r"1 of 5 questions are left until .*\d:\d\d"))
    expect(banner).to_contain_text(re.compile(r"5 questions are used up.*from .*\d:\d\d"))
    tab.ask("one too many")
    expect(page.locator("article.question .note").last).to_contain_text("kept")
    banner.get_by_role("button", name="Dismiss").click()
    expect(banner).to_be_hidden()


def test_the_meter_tells_how_full_the_window_is(tab: Tab) -> None:
    meter = tab.page.locator("#corner .meter")
    expect(meter).to_be_hidden()
    tab.ask("hello")
    tab.wait_for_end()
    figures = tab.stored_answer()["generation"]
    used = figures["prompt_tokens"] + figures["generated_tokens"]
    expect(meter).to_have_attribute("title", re.compile(rf"^{used} of [\d,]+ tokens\."))
    meter.click()
    expect(tab.page.get_by_role("dialog")).to_contain_text(f"{used} of")
