"""What tools can say about access: axe-core's rules of WCAG 2.2 AA in the page's main states, and no sideways scroll.

What only a person can judge (words, order, calm) is in the other tests of this folder by behaviour.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import BrowserContext, Page, expect

from tests.e2e.tab import Tab
from tests.livesite import LiveSite

pytestmark = pytest.mark.browser

RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
RUN = """async (tags) => {
  const { violations } = await axe.run({ runOnly: { type: "tag", values: tags } });
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) =>
    `${id}: ${html.slice(0, 160)} ${failureSummary}`));
}"""
WIDTHS = (360, 390, 760, 1024, 2560)
SIDEWAYS = "document.documentElement.scrollWidth > innerWidth"
MARKDOWN = (
    "# Rain\n\nIt *falls* [down](https://example.com), see `drop()`.\n\n"
    "| a | b |\n|---|---|\n| 1 | 2 |\n\n```python\nfor drop in rain:\n    fall(drop)\n```\n\n> Soon.\n"
)


def faults(page: Page) -> list[str]:
    """What axe finds wrong on the page as it stands, colours at rest."""
    page.emulate_media(reduced_motion="reduce")
    page.evaluate(AXE_SCRIPT)
    found: list[str] = page.evaluate(RUN, RULES)
    return found


def let_see_all(tab: Tab, site: LiveSite) -> None:
    """Whoever is at the chat's page becomes staff."""
    name = tab.page.evaluate("JSON.parse(document.getElementById('boot').textContent).user.name")
    site.sql("UPDATE accounts_user SET is_staff = true, is_superuser = true WHERE username = %s", name)


@pytest.fixture(params=["light", "dark"])
def dressed(request: pytest.FixtureRequest, tab: Tab) -> Iterator[Tab]:
    tab.page.emulate_media(color_scheme=request.param)
    yield tab


def test_the_empty_chat_and_an_answer_pass_axe(dressed: Tab) -> None:
    assert faults(dressed.page) == []
    dressed.ask_script(text=MARKDOWN)
    dressed.wait_for_end()
    dressed.answer.locator(".truth").click()
    assert faults(dressed.page) == []


def test_trouble_passes_axe(tab: Tab) -> None:
    tab.ask_script(fail_after=3)
    expect(tab.answer.get_by_role("alert")).to_be_visible()
    assert faults(tab.page) == []


def test_pages_beside_the_chat_pass_axe(site: LiveSite, person: BrowserContext) -> None:
    page = person.new_page()
    for path in ("/usage", "/no/such/page"):
        page.goto(site.url + path)
        assert faults(page) == [], path
    person.clear_cookies()
    for path in ("/signin", "/signup"):
        page.goto(site.url + path)
        assert faults(page) == [], path


def test_usage_passes_axe_with_numbers_in_it(dressed: Tab, site: LiveSite) -> None:
    dressed.ask_script(text="Rain.")
    dressed.wait_for_end()
    let_see_all(dressed, site)
    for path in ("/usage", "/usage/all"):
        dressed.page.goto(site.url + path)
        expect(dressed.page.locator("table")).not_to_have_count(0)
        assert faults(dressed.page) == [], path
        dressed.page.set_viewport_size({"width": 360, "height": 740})
        assert faults(dressed.page) == [], path
        assert not dressed.page.evaluate(SIDEWAYS), path


def test_a_shared_chat_passes_axe(dressed: Tab) -> None:
    page = dressed.page
    dressed.ask_script(text=MARKDOWN)
    dressed.wait_for_end()
    page.get_by_role("button", name="More about this chat").click()
    page.get_by_role("menuitem", name="Share by link").click()
    page.get_by_role("button", name="Make a link").click()
    address = page.get_by_label("Address of the link")
    expect(address).to_be_visible()
    assert faults(page) == []
    page.goto(address.input_value())
    expect(page.locator("article.answer table")).to_be_visible()
    assert faults(page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_doors_pass_axe_when_they_refuse(
    site: LiveSite, context: BrowserContext, scheme: Literal["light", "dark"]
) -> None:
    page = context.new_page()
    page.emulate_media(color_scheme=scheme)
    page.goto(f"{site.url}/signup")
    page.get_by_label("Username").fill("Ada")
    page.get_by_label("Password", exact=True).fill("12345")
    page.get_by_label("Password confirmation").fill("12345")
    page.get_by_role("button", name="Make an account").click()
    expect(page.get_by_role("alert")).not_to_have_count(0)
    assert faults(page) == []
    page.goto(f"{site.url}/signin")
    page.get_by_label("Username").fill("nobody-here")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_be_visible()
    assert faults(page) == []


def test_the_pages_for_staff_that_are_ours_pass_axe(dressed: Tab, site: LiveSite) -> None:
    let_see_all(dressed, site)
    for path, part in (("/admin/engine/", ".engine-sections"), ("/admin/selftest/", "#events")):
        dressed.page.goto(site.url + path)
        dressed.page.locator(part).wait_for()
        assert faults(dressed.page) == [], path


def test_nothing_scrolls_sideways_at_any_width(tab: Tab) -> None:
    tab.ask_script(text=MARKDOWN + "\n" + "wide" * 400 + "\n\n```\n" + "x" * 900 + "\n```\n")
    tab.wait_for_end()
    for width in WIDTHS:
        tab.page.set_viewport_size({"width": width, "height": 800})
        expect(tab.page.locator("#message")).to_be_in_viewport()
        assert not tab.page.evaluate(SIDEWAYS), width
    expect(tab.page).to_have_title(re.compile("Rill"))
