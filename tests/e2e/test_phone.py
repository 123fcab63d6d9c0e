"""A phone held by somebody who writes Chinese: small, touched, and half covered by its keyboard while they type."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.e2e.people import let_in
from tests.e2e.tab import Tab
from tests.livesite import LiveSite

pytestmark = pytest.mark.browser

PHONE = {"width": 360, "height": 740}
WITH_KEYBOARD = {"width": 360, "height": 400}
LYING = {"width": 740, "height": 320}
TURNED = {"width": 915, "height": 412}  # wide enough for the rail beside the text
# Safari on a phone zooms into what is smaller when it is tapped, and stays there.
LEAST_FIELD_PX = 16
FIELDS = "input:not([type=checkbox], [type=radio], [type=hidden], [type=file]), textarea, select"
SIZES = """fields => Object.fromEntries(fields.filter(field => field.checkVisibility())
  .map(field => [field.id || field.className || field.type, parseFloat(getComputedStyle(field).fontSize)]))"""
# Links whose icon stands in another line than their first character.
BROKEN = """links => links.filter(link => {
  const range = document.createRange();
  const words = document.createTreeWalker(link, NodeFilter.SHOW_TEXT).nextNode();
  range.setStart(words, 0);
  range.setEnd(words, 1);
  const icon = link.querySelector("svg").getBoundingClientRect();
  const first = range.getBoundingClientRect();
  return icon.bottom < first.top || icon.top > first.bottom;
}).map(link => link.textContent)"""


@pytest.fixture
def pocket(browser: Browser) -> Iterator[BrowserContext]:
    context = browser.new_context(viewport=PHONE, has_touch=True, is_mobile=True, locale="zh-CN")  # type: ignore[arg-type]
    yield context
    context.close()


@pytest.fixture
def phone(site: LiveSite, pocket: BrowserContext, sessions: Iterator[str]) -> Iterator[Tab]:
    """An empty chat in Chinese."""
    let_in(pocket, site, next(sessions))
    tab = Tab(pocket.new_page(), site.url)
    tab.open()
    yield tab
    assert tab.faults() == []


def ask(phone: Tab, text: str) -> None:
    phone.page.fill("#message", text)
    phone.page.get_by_role("button", name="发送").tap()
    phone.wait_for_end()


def open_row_menu(page: Page) -> None:
    page.locator("#drawer-open").tap()
    page.locator(".row button").first.tap()
    expect(page.get_by_role("menu")).to_be_visible()


def test_what_a_password_needs_is_said_beforehand_and_a_refusal_is_in_chinese(
    site: LiveSite, pocket: BrowserContext
) -> None:
    page = pocket.new_page()
    page.goto(f"{site.url}/signup")
    password = page.get_by_label("密码", exact=True)
    expect(password).to_have_accessible_description(re.compile("至少 8 个字符"))
    page.get_by_label("用户名").fill("小明")
    password.fill("12345")
    page.get_by_label("密码确认").fill("12345")
    page.get_by_role("button", name="创建账号").tap()
    errors = page.get_by_role("alert")
    expect(errors).to_have_count(3)
    for words in errors.all_inner_texts():
        assert not re.search("[A-Za-z]", words), words
    expect(password).to_have_accessible_description(re.compile("至少 8 个字符.*太短", re.DOTALL))


def test_a_question_that_is_changed_stays_in_sight_above_the_keyboard(phone: Tab) -> None:
    page = phone.page
    ask(phone, "天空为什么是蓝色的？\n" * 8)
    page.get_by_role("button", name="修改").tap()
    field = page.get_by_role("textbox", name="修改后的问题")
    page.set_viewport_size(WITH_KEYBOARD)  # type: ignore[arg-type]
    page.wait_for_timeout(300)  # what follows the end of the chat would have moved by now
    expect(field).to_be_in_viewport(ratio=0.99)
    expect(page.locator("form.edit").get_by_role("button", name="发送")).to_be_in_viewport(ratio=0.99)
    hint, cancel = (
        page.locator(".edit-hint").bounding_box(),
        page.get_by_role("button", name="取消").bounding_box(),
    )
    assert hint and cancel and hint["height"] < 30 and hint["y"] + hint["height"] <= cancel["y"]


def test_no_field_is_so_small_that_the_phone_zooms_in(phone: Tab) -> None:
    page = phone.page
    seen: dict[str, float] = {}

    def look() -> None:
        seen.update(page.locator(FIELDS).evaluate_all(SIZES))

    ask(phone, "你好")
    page.locator("article.question").get_by_role("button", name="修改").tap()
    look()
    page.get_by_role("button", name="回答得不好").tap()
    look()
    page.get_by_role("button", name="此对话", exact=True).tap()
    look()
    page.locator("#sheet-close").tap()
    open_row_menu(page)
    page.get_by_role("menuitem", name="标签").tap()
    look()
    page.locator("#sheet-close").tap()
    page.locator(".row button").first.tap()
    page.get_by_role("menuitem", name="重命名").tap()
    look()
    page.goto(f"{phone.url}/keys")
    page.get_by_role("button", name="新建密钥").tap()
    look()
    page.get_by_label("名称").fill("手机")
    page.get_by_role("button", name="生成密钥").tap()
    expect(page.locator(".secret-line input")).to_be_visible()
    look()
    assert {"message", "search", "rename"} < set(seen) and len(seen) >= 9, seen
    assert {name: size for name, size in seen.items() if size < LEAST_FIELD_PX} == {}


def test_the_last_entry_of_a_menu_can_be_tapped_on_a_low_screen(phone: Tab) -> None:
    ask(phone, "你好")
    phone.page.set_viewport_size(LYING)  # type: ignore[arg-type]
    open_row_menu(phone.page)
    last = phone.page.get_by_role("menuitem", name="删除")
    last.scroll_into_view_if_needed()
    expect(last).to_be_in_viewport(ratio=0.99)
    box = phone.page.get_by_role("menu").bounding_box()
    assert box and box["y"] >= 0 and box["y"] + box["height"] <= LYING["height"]


def test_escape_leaves_the_focus_where_it_is_while_no_drawer_is_open(phone: Tab) -> None:
    field = phone.page.locator("#message")
    field.tap()
    phone.page.keyboard.press("Escape")
    expect(field).to_be_focused()
    phone.page.locator("#drawer-open").tap()
    phone.page.keyboard.press("Escape")
    expect(phone.page.locator("#drawer-open")).to_be_focused()


def test_a_phone_that_is_turned_with_the_drawer_open_still_takes_a_question(phone: Tab) -> None:
    phone.page.locator("#drawer-open").tap()
    expect(phone.page.locator("#rail")).to_be_visible()
    phone.page.set_viewport_size(TURNED)  # type: ignore[arg-type]
    ask(phone, "你好")
    phone.page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    expect(phone.page.locator("#rail")).not_to_be_visible()


def test_the_sign_of_a_picture_never_ends_a_line_without_its_words(phone: Tab) -> None:
    ask(
        phone,
        '/script {"text": "看 ![示意图](https://example.com/x.png)，'
        + "很长，" * 3
        + '![a](https://e.com/y.png)"}',
    )
    links = phone.page.locator(".image-link")
    expect(links).to_have_count(2)
    assert links.all_inner_texts() == ["示意图", "a"]
    for indent in range(0, 330, 6):
        phone.page.locator(".answer .text p").evaluate("(p, px) => (p.style.textIndent = `${px}px`)", indent)
        assert links.evaluate_all(BROKEN) == [], indent


def test_the_title_has_room_for_eight_characters_while_the_window_is_far_from_full(phone: Tab) -> None:
    ask(phone, "天空为什么是蓝色")
    title = phone.page.get_by_role("heading", level=1)
    expect(title).to_have_text("天空为什么是蓝色")
    assert title.evaluate("node => node.scrollWidth <= node.clientWidth")
    expect(phone.page.get_by_role("button", name="此对话", exact=True)).to_be_visible()
