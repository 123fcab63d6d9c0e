"""The list of chats and what one does with whole chats: by mouse and by keys, in one tab and in two."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from tests.e2e.tab import Tab, until
from tests.livesite import LiveSite

pytestmark = pytest.mark.browser

ADD_CHATS = """
INSERT INTO chat_conversation (id, owner_id, title, system_prompt, parameters, is_pinned, is_archived, is_temporary,
                               tags, created_at, updated_at)
SELECT gen_random_uuid(), session.owner, %s || ' ' || lpad(i::text, 4, '0'), '', '{}', false, false, false, '{}', now(),
       now() - i * interval '1 minute'
FROM generate_series(1, %s) i, (SELECT owner_id AS owner FROM chat_conversation WHERE id = %s) session
"""
# What of the list changes while something happens: how many lines are put in, and how many have new content.
COUNT_CHANGES = """() => {
  window.touched = 0;
  const lines = document.querySelector("#conversations");
  new MutationObserver((records) => {
    for (const record of records) window.touched += record.addedNodes.length + record.removedNodes.length;
  }).observe(lines, { childList: true, subtree: true });
}"""


def lines(page: Page) -> Locator:
    return page.locator("#conversations li")


def line(page: Page, title: str) -> Locator:
    return page.locator("#conversations li", has_text=title)


def choose(page: Page, title: str, *entries: str) -> None:
    """Opens the menu of a line, and chooses in it."""
    line(page, title).hover()
    page.get_by_role("button", name=f"More about “{title}”").click()
    for entry in entries:
        page.get_by_role("menuitem", name=entry).click()


def ask(tab: Tab, *questions: str) -> None:
    """Each in a chat of its own; the last one is shown."""
    for number, question in enumerate(questions):
        if number:
            tab.new_chat()
        tab.ask(question)
        tab.wait_for_end()


def test_pins_archive_and_undo(tab: Tab) -> None:
    page = tab.page
    ask(tab, "Apples", "Pears")
    choose(page, "Apples", "Pin")
    expect(page.get_by_role("heading", name="Pinned")).to_be_visible()
    expect(lines(page).first).to_contain_text("Apples")
    choose(page, "Pears", "Archive")
    expect(lines(page)).to_have_count(1)
    page.get_by_role("button", name="Undo").click()
    expect(lines(page)).to_have_count(2)
    choose(page, "Pears", "Archive")
    page.locator(".view").click()
    page.get_by_role("menuitem", name="Archived").click()
    expect(line(page, "Pears")).to_be_visible()
    choose(page, "Pears", "Back to the list")
    expect(page.locator(".rail-note")).to_contain_text("Nothing is archived")
    page.get_by_role("button", name="Back to all chats").click()
    expect(lines(page)).to_have_count(2)


def test_tags_are_given_shown_and_filtered_by(tab: Tab) -> None:
    page = tab.page
    ask(tab, "Apples", "Pears")
    choose(page, "Apples", "Tags")
    page.get_by_label("New tag").fill("#水果")
    page.get_by_label("New tag").press("Enter")
    expect(page.locator(".chips li")).to_contain_text("#水果")
    page.keyboard.press("Escape")
    page.locator(".view").click()
    page.get_by_role("menuitem", name="水果").click()
    expect(lines(page)).to_have_count(1)
    expect(lines(page)).to_contain_text("Apples")
    choose(page, "Apples", "Tags")
    page.get_by_role("button", name="Remove the tag 水果").click()
    expect(page.locator(".rail-note")).to_contain_text("#水果")


def test_a_search_says_what_it_found_and_keeps_the_focus(tab: Tab) -> None:
    page = tab.page
    ask(tab, "为什么天空是蓝色的？", "Rivers and lakes")
    page.get_by_label("Search chats").click()
    page.keyboard.type("天空")
    expect(page.locator(".found")).to_have_text("1 found")
    expect(lines(page)).to_have_count(1)
    expect(page.locator("#search")).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(lines(page).locator("a")).to_be_focused()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Escape")
    expect(lines(page)).to_have_count(2)
    page.keyboard.type("zebra")
    expect(page.locator(".rail-note")).to_contain_text("No chat has these words")


def test_several_are_picked_by_keys_and_deleted_together(tab: Tab) -> None:
    page = tab.page
    ask(tab, "One", "Two", "Three")
    lines(page).first.locator("a").focus()
    page.keyboard.press("Space")
    expect(page.locator(".pick-bar")).to_contain_text("1 picked")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Space")
    expect(page.locator(".pick-bar")).to_contain_text("2 picked")
    page.keyboard.press("Delete")
    expect(page.locator("#confirm-text")).to_contain_text("Delete 2 chats")
    page.locator("#confirm-yes").click()
    expect(lines(page)).to_have_count(1)
    expect(page.locator(".pick-bar")).to_be_hidden()
    expect(page.locator(".empty")).to_be_visible()  # the shown one was among them
    lines(page).first.locator("a").focus()
    page.keyboard.press("F2")
    page.keyboard.type("Renamed")
    page.keyboard.press("Enter")
    expect(lines(page).locator("a")).to_be_focused()
    expect(lines(page)).to_contain_text("Renamed")
    page.keyboard.press("Enter")
    page.wait_for_url("**/c/*")


def test_a_range_is_picked_by_mouse_and_exported(tab: Tab) -> None:
    page = tab.page
    ask(tab, "One", "Two", "Three")
    page.get_by_role("button", name="Pick several").click()
    lines(page).nth(0).locator("a").click()
    lines(page).nth(2).locator("a").click(modifiers=["Shift"])
    expect(page.locator(".pick-bar")).to_contain_text("3 picked")
    page.locator(".pick-bar").get_by_role("button", name="Export").click()
    with page.expect_download() as waiting:
        page.get_by_role("menuitem", name="JSON").click()
    told = json.loads(waiting.value.path().read_text())
    assert {talk["title"] for talk in told["conversations"]} == {"One", "Two", "Three"}
    page.locator(".pick-bar").get_by_role("button", name="Pick no longer").click()
    choose(page, "Two")
    with page.expect_download() as waiting:
        page.get_by_role("menuitem", name="Markdown").click()
    assert waiting.value.suggested_filename == "Two.md"


def test_an_answer_elsewhere_leaves_a_mark_until_it_is_looked_at(
    tab: Tab, person: BrowserContext, site: LiveSite
) -> None:
    second = Tab(person.new_page(), site.url)
    second.open()
    tab.ask_script(text="a b c d e f", delay_ms=1500)
    expect(second.page.locator("#conversations .mark.running")).to_have_count(1)
    tab.new_chat()
    for page in (tab.page, second.page):
        expect(page.locator("#conversations .mark.new")).to_have_count(1)
        expect(page.locator("#conversations .mark.running")).to_have_count(0)
        expect(page.locator("#status")).to_have_text(re.compile("^A new answer in “/script"))
    second.page.get_by_role("button", name="Show or hide the chats").click()
    assert has_dot(second.page, "#rail-toggle")
    second.page.set_viewport_size({"width": 390, "height": 844})
    assert has_dot(second.page, "#drawer-open")
    second.page.set_viewport_size({"width": 1200, "height": 800})
    second.page.get_by_role("button", name="Show or hide the chats").click()
    lines(second.page).locator("a").click()
    second.wait_for_text("a b c d e f")
    for page in (tab.page, second.page):
        expect(page.locator("#conversations .mark")).to_have_count(0)
    assert not has_dot(second.page, "#drawer-open")
    assert second.faults() == []


def has_dot(page: Page, button: str) -> bool:
    """Whether what opens the list says that there is news in it."""
    content = "name => getComputedStyle(document.querySelector(name), '::after').content"
    return bool(page.evaluate(content, button) == '""')


def test_what_another_tab_does_to_a_chat_is_seen_at_once(
    tab: Tab, person: BrowserContext, site: LiveSite
) -> None:
    ask(tab, "Apples")
    second = Tab(person.new_page(), site.url)
    second.page.goto(tab.page.url)
    second.wait_for_end()
    choose(tab.page, "Apples", "Rename")
    tab.page.get_by_label("New title").fill("Fruit")
    tab.page.keyboard.press("Enter")
    expect(lines(second.page)).to_contain_text("Fruit")
    expect(second.page).to_have_title(re.compile("Fruit"))
    choose(tab.page, "Fruit", "Delete")
    tab.page.locator("#confirm-yes").click()
    expect(lines(second.page)).to_have_count(0)
    expect(second.page.get_by_role("alert")).to_contain_text("does not exist")
    expect(tab.page.locator(".empty")).to_be_visible()
    assert second.faults() == []


def test_a_long_list_comes_in_pages_and_a_touch_draws_its_own_line_only(tab: Tab, site: LiveSite) -> None:
    page = tab.page
    ask(tab, "First")
    site.sql(ADD_CHATS, "Chat", 1000, tab.conversation())
    page.reload()
    tab.wait_for_end()
    expect(lines(page)).not_to_have_count(0)  # the first page, which no scrolling brings
    for _ in range(20):
        num = lines(page).count()
        if num >= 1001:
            break
        page.locator("#conversations").evaluate("box => box.scrollTo(0, box.scrollHeight)")
        until(lambda num=num: lines(page).count() > num, page)
    expect(lines(page)).to_have_count(1001)
    page.evaluate(COUNT_CHANGES)
    tab.ask("Second")
    expect(page.locator("article.answer")).to_have_count(2)
    tab.wait_for_end()
    choose(page, "Chat 0500", "Pin")
    expect(page.get_by_role("heading", name="Pinned")).to_be_visible()
    assert page.evaluate("window.touched") < 60, "a change of one chat draws no others"


def test_files_come_in_and_what_is_wrong_with_them_is_said(tab: Tab) -> None:
    page = tab.page
    page.get_by_role("button", name="Import and export").click()
    page.get_by_role("menuitem", name="Import chats").click()

    def give(text: str) -> None:
        page.set_input_files(
            "#import-file",
            files=[{"name": "chats.json", "mimeType": "application/json", "buffer": text.encode()}],
        )

    give('{"neither": "nor"}')
    expect(page.locator(".import-outcome .note")).to_contain_text("could not be read")
    tab.forget_faults()
    moment = "2026-01-01T12:00:00Z"
    said = {"number": 1, "parent": None, "role": "user", "text": "河流", "created_at": moment}
    talk = {"title": "Brought along", "created_at": moment, "updated_at": moment, "messages": [said]}
    give(json.dumps({"format": "rill-conversations", "version": 1, "conversations": [talk]}))
    expect(page.locator(".import-outcome")).to_contain_text("One chat with 1 messages")
    expect(lines(page)).to_contain_text("Brought along")


def test_a_chat_is_shared_seen_by_a_stranger_and_taken_back(
    tab: Tab, browser: Browser, site: LiveSite
) -> None:
    page = tab.page
    tab.ask_script(text="Some **bold** words and\n\n```py\ncode\n```\n\n<b>no markup</b>")
    tab.wait_for_end()
    page.get_by_role("button", name="More about this chat").click()
    page.get_by_role("menuitem", name="Share by link").click()
    page.get_by_role("button", name="Make a link").click()
    address = page.get_by_label("Address of the link").input_value()
    context = browser.new_context(locale="en-GB")
    stranger = Tab(context.new_page(), site.url)
    stranger.page.goto(address)
    expect(stranger.page.locator("article.answer strong")).to_have_text("bold")
    expect(stranger.page.locator("article.answer .code code")).to_contain_text("code")
    expect(stranger.page.locator("article.answer")).to_contain_text("<b>no markup</b>")
    assert context.cookies() == []
    assert stranger.faults() == []
    page.get_by_role("button", name="Take back").click()
    page.locator("#confirm-yes").click()
    expect(page.locator(".share-links")).to_contain_text("taken back")
    assert (gone := stranger.page.goto(address)) is not None and gone.status == 404
    context.close()


def test_the_list_on_a_phone(site: LiveSite, person: BrowserContext) -> None:
    tab = Tab(person.new_page(), site.url)
    tab.page.set_viewport_size({"width": 390, "height": 800})
    tab.open()
    ask(tab, "Apples")
    page = tab.page
    page.get_by_role("button", name="Chats", exact=True).click()
    choose(page, "Apples", "Tags")
    expect(page.get_by_label("New tag")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#sheet")).to_be_hidden()
    expect(lines(page)).to_be_visible()
    assert tab.faults() == []
