"""Templates: found with `/`, filled in, made and changed, offered in a new chat, there without a line."""

from __future__ import annotations

import json
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.e2e.people import let_in
from tests.e2e.tab import Tab, until
from tests.livesite import LiveSite

pytestmark = pytest.mark.browser

LIBRARY = (
    {"title": "Translate", "body": "Translate into {{language}}: {{text}}", "is_starter": True},
    {"title": "Summarise", "body": "Sum up in three points.", "is_starter": True},
    {"title": "翻译成英文", "body": "翻译成英文：{{text}}", "language": "zh-hans"},
)


ADD_PRESETS = """
from chatsite.chat.models import PromptTemplate
from chatsite.chat.template_presets import add_missing
add_missing(PromptTemplate)
"""


@pytest.fixture
def stocked(tab: Tab, site: LiveSite) -> Tab:
    """A tab of somebody with templates, where everybody has none."""
    site.sql("DELETE FROM chat_prompttemplate WHERE owner_id IS NULL")
    cookies = {cookie["name"]: cookie["value"] for cookie in tab.page.context.cookies()}
    for template in LIBRARY:
        made = tab.page.request.post(
            f"{tab.url}/api/templates",
            data=template,
            headers={"X-CSRFToken": cookies["csrftoken"], "Origin": tab.url, "Referer": tab.url},
        )
        assert made.status == 201, made.text()
    tab.page.reload()
    expect(tab.page.locator(".starters")).to_contain_text("Summarise")
    return tab


def uses(tab: Tab) -> dict[str, int]:
    rows = tab.page.request.get(f"{tab.url}/api/templates").json()
    return {row["title"]: row["use_count"] for row in rows}


def chosen(tab: Tab) -> str:
    """The option that the field points at."""
    return str(
        tab.page.evaluate(
            "document.getElementById(document.querySelector('#message').getAttribute('aria-activedescendant'))"
            "?.querySelector('b')?.textContent ?? ''"
        )
    )


def test_a_slash_finds_a_template_whose_variables_are_asked_for(stocked: Tab) -> None:
    page = stocked.page
    options = page.get_by_role("option")
    page.focus("#message")
    page.keyboard.type("/")
    expect(options).to_have_count(4)  # and the way to all of them
    page.keyboard.press("ArrowDown")
    second = chosen(stocked)
    page.keyboard.press("ArrowUp")
    assert chosen(stocked) != second
    page.keyboard.type("trl")
    expect(options).to_have_count(2)
    assert chosen(stocked) == "Translate"
    page.keyboard.press("Enter")
    expect(page.get_by_label("language")).to_be_focused()
    page.keyboard.type("French")
    page.get_by_label("text", exact=True).fill("Good morning")
    page.get_by_role("button", name="Put it into the message").click()
    expect(page.locator("#message")).to_be_focused()
    expect(page.locator("#message")).to_have_value("Translate into French: Good morning")
    until(lambda: uses(stocked)["Translate"] == 1, page)
    expect(page.locator("article")).to_have_count(0)


def test_what_only_begins_with_a_slash_is_sent_as_it_is(stocked: Tab) -> None:
    page = stocked.page
    page.fill("#message", "")
    page.focus("#message")
    page.keyboard.type("/etc/hosts, what is it?")
    expect(page.get_by_role("option")).to_have_count(0)
    page.keyboard.press("Enter")
    stocked.wait_for_end()
    assert stocked.stored()["messages"][0]["text"] == "/etc/hosts, what is it?"
    page.keyboard.type("/su")
    expect(page.get_by_role("option")).to_have_count(2)
    page.keyboard.press("Escape")
    expect(page.get_by_role("option")).to_have_count(0)
    expect(page.locator("#message")).to_have_value("/su")


def test_a_chinese_typist_finds_templates_and_chooses_none_by_confirming_a_word(stocked: Tab) -> None:
    page = stocked.page
    session = page.context.new_cdp_session(page)
    page.focus("#message")
    session.send("Input.insertText", {"text": "、"})  # what the key gives with Chinese punctuation
    expect(page.get_by_role("option")).to_have_count(4)
    session.send("Input.imeSetComposition", {"text": "fanyi", "selectionStart": 5, "selectionEnd": 5})
    confirm = "document.activeElement.dispatchEvent(new KeyboardEvent('keydown', "
    confirm += "{key: 'Enter', keyCode: 229, bubbles: true, cancelable: true}))"
    assert page.evaluate(confirm)  # left to the input method
    expect(page.get_by_role("dialog")).to_have_count(0)
    session.send("Input.insertText", {"text": "翻译"})
    expect(page.get_by_role("option")).to_have_count(2)
    assert chosen(stocked) == "翻译成英文"
    page.keyboard.press("Tab")
    expect(page.get_by_role("dialog", name="翻译成英文")).to_be_visible()


def test_a_button_offers_what_the_draft_seems_to_want_and_keeps_it(stocked: Tab) -> None:
    page = stocked.page
    page.fill("#message", "请把这封信翻译成英文")
    page.get_by_role("button", name="Templates").click()
    assert chosen(stocked) == "翻译成英文"
    page.get_by_role("option").first.click()
    expect(page.get_by_label("text", exact=True)).to_have_value("请把这封信翻译成英文")
    page.get_by_label("text", exact=True).press("Control+Enter")
    expect(page.locator("#message")).to_have_value("翻译成英文：请把这封信翻译成英文")


def test_templates_are_made_changed_erased_and_there_without_a_line(
    stocked: Tab, person: BrowserContext
) -> None:
    page = stocked.page
    page.get_by_role("button", name="Templates").click()
    page.get_by_role("option", name="All templates").click()
    sheet = page.get_by_role("dialog")
    sheet.get_by_role("button", name="New template").click()
    sheet.get_by_label("Title").fill("Poem")
    sheet.get_by_role("button", name="Save").click()
    expect(sheet).to_contain_text("Please write something here.")
    sheet.get_by_label("Text", exact=True).fill("Write a poem.")
    sheet.get_by_role("button", name="Save").click()
    sheet.get_by_role("button", name="Change “Poem”").click()
    sheet.get_by_label("Text", exact=True).fill("Write a short poem.")
    sheet.get_by_role("button", name="Save").click()
    sheet.get_by_role("button", name="Delete “Summarise”").click()
    page.locator("#confirm-yes").click()
    expect(sheet.get_by_role("listitem")).to_have_count(3)
    expect(page.locator(".starters")).not_to_contain_text("Summarise")
    page.keyboard.press("Escape")
    expect(sheet).to_have_count(0)
    person.set_offline(True)
    page.fill("#message", "")
    page.focus("#message")
    page.keyboard.type("/poem")
    page.keyboard.press("Enter")
    expect(page.locator("#message")).to_have_value("Write a short poem.")
    person.set_offline(False)
    stocked.forget_cut()


def test_starters_that_are_used_stand_first(stocked: Tab) -> None:
    page = stocked.page
    first = page.locator(".starters button").first
    for title in ("Translate", "Summarise", "Summarise"):
        page.locator(".starters").get_by_role("button", name=title).click()
        page.keyboard.press("Escape")
    page.reload()
    expect(first).to_contain_text("Summarise")


@pytest.mark.parametrize(
    ("language", "title", "other"), [("en", "Translate", "翻译"), ("zh-hans", "翻译", "Translate")]
)
def test_shipped_templates_are_offered_in_the_language_of_the_page(
    tab: Tab, site: LiveSite, language: str, title: str, other: str
) -> None:
    site.sql("DELETE FROM chat_prompttemplate WHERE owner_id IS NULL")  # what other tests made for everybody
    site.manage("shell", "--verbosity", "0", "--command", ADD_PRESETS)
    page, options = tab.page, tab.page.get_by_role("option")
    page.context.add_cookies([{"name": "django_language", "value": language, "url": tab.url}])
    page.evaluate("localStorage.clear()")  # as in a browser that was never here
    tab.open()
    expect(page.locator(".starters")).to_be_visible()
    starter = page.locator(".starters button").filter(has=page.get_by_text(title, exact=True))
    expect(starter).to_have_count(1)
    expect(page.locator(".starters button b")).to_have_count(3)
    expect(page.locator(".starters")).not_to_contain_text("{")
    page.fill("#message", "/")
    expect(options).to_have_count(7)  # six, and the way to all of them
    expect(options.filter(has_text=other)).to_have_count(0)
    page.fill("#message", f"/{other}")
    expect(options.filter(has_text=other).first).to_be_visible()
    page.fill("#message", "")
    starter.click()
    expect(page.get_by_role("dialog", name=title)).to_be_visible()
    page.keyboard.press("Escape")
    page.get_by_role("button", name={"en": "Templates", "zh-hans": "模板"}[language], exact=True).click()
    assert chosen(tab) == title  # it was used once


def test_staff_makes_a_template_for_everybody(
    tab: Tab, site: LiveSite, browser: Browser, sessions: Any
) -> None:
    page = tab.page
    me = page.evaluate("JSON.parse(document.getElementById('boot').textContent).user.name")
    assert "everybody" not in open_new(page)
    site.sql("UPDATE accounts_user SET is_staff = true WHERE username = %s", me)
    tab.open()
    open_new(page)
    sheet = page.get_by_role("dialog")
    sheet.get_by_label("Title").fill("House rules")
    sheet.get_by_label("Text", exact=True).fill("Follow the house rules.")
    sheet.get_by_label("Offer it to everybody").check()
    sheet.get_by_role("button", name="Save").click()
    expect(sheet.get_by_role("listitem").filter(has_text="House rules")).to_contain_text("for everybody")
    context = browser.new_context(locale="en-GB")
    let_in(context, site, next(sessions))
    other = Tab(context.new_page(), site.url)
    other.open()
    other.page.fill("#message", "/house")
    expect(other.page.get_by_role("option", name="House rules")).to_be_visible()
    context.close()


def test_a_list_that_comes_late_does_not_take_the_form_away(tab: Tab) -> None:
    page, held = tab.page, []
    page.route("**/api/templates*", lambda route: held.append(route))  # noqa: PLW0108 - the route looks at its handler
    open_new(page)
    title = page.get_by_role("dialog").get_by_label("Title")
    title.fill("House rules")
    until(lambda: bool(held), page)
    with page.expect_response("**/api/templates*"):
        held[0].continue_()
    page.wait_for_timeout(300)  # the page has had the list for a while
    expect(title).to_have_value("House rules")


def open_new(page: Page) -> str:
    """The words of the form for a new template."""
    page.get_by_role("button", name="Templates", exact=True).click()
    page.get_by_role("option", name="All templates").click()
    page.get_by_role("dialog").get_by_role("button", name="New template").click()
    return page.get_by_role("dialog").inner_text()


def test_what_a_template_holds_is_text(tab: Tab) -> None:
    page = tab.page
    name = page.evaluate("JSON.parse(document.getElementById('boot').textContent).user.name")
    kept = json.dumps({"items": evil(), "etag": ""})
    page.evaluate("([key, kept]) => localStorage.setItem(key, kept)", [f"rill.templates.{name}", kept])
    page.route("**/api/templates", lambda route: route.abort())
    page.reload()
    page.keyboard.type("/")
    expect(page.get_by_role("option").first).to_contain_text("<img src=x onerror=")
    expect(page.locator(".starters")).to_contain_text("<img src=x onerror=")
    tab.forget_faults()


def evil() -> list[dict[str, Any]]:
    markup = "<img src=x onerror=alert(1)>"
    known = {"language": "en", "is_starter": True, "is_shared": False, "use_count": 0}
    return [{"id": 1, "title": markup, "body": markup} | known]
