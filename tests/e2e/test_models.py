"""Two models behind one page: which one answers is chosen in the corner, for the shown chat and for new ones."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import BrowserContext, Locator, expect

from tests.e2e.people import signed_in
from tests.e2e.tab import Tab, until
from tests.livesite import LiveSite, live_site

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def site() -> Iterator[LiveSite]:
    with live_site("models", models=("river", "stone"), SEMCACHE_BUDGET_MS="5000") as running:
        yield running


@pytest.fixture(scope="module")
def sessions(site: LiveSite) -> Iterator[str]:
    return iter(signed_in(site, 10))


def picker(tab: Tab, model: str) -> Locator:
    return tab.page.get_by_role("button", name=f"Answers come from {model}")


def choose(tab: Tab, before: str, model: str) -> None:
    picker(tab, before).click()
    tab.page.get_by_role("menuitemradio", name=model).click()
    expect(picker(tab, model)).to_be_focused()


def answered_by(tab: Tab, num_answers: int = 1) -> str:
    """By what the page says of the last of so many answers, which is what is stored of it."""
    expect(tab.page.locator("article.answer")).to_have_count(num_answers)
    tab.wait_for_end()
    said = tab.answer.locator(".truth-box")
    stored = str(tab.stored()["messages"][-1]["generation"]["model"])
    expect(said).to_contain_text(stored)
    return stored


def test_the_next_answer_is_by_the_model_that_was_chosen(tab: Tab) -> None:
    tab.ask("one")
    assert answered_by(tab) == "river"
    choose(tab, "river", "stone")
    until(lambda: tab.stored()["model"] == "stone", tab.page)
    tab.ask("two")
    assert answered_by(tab, 2) == "stone"
    tab.page.reload()
    expect(picker(tab, "stone")).to_be_visible()
    assert [answer["generation"]["model"] for answer in tab.stored()["messages"][1::2]] == ["river", "stone"]


def test_new_chats_take_the_last_choice_and_old_ones_keep_theirs(tab: Tab) -> None:
    tab.ask("one")
    assert answered_by(tab) == "river"
    tab.new_chat()
    choose(tab, "river", "stone")
    expect(tab.page.locator(".empty")).to_contain_text("stone answers")
    tab.ask("two")
    assert answered_by(tab) == "stone"
    tab.new_chat()
    expect(picker(tab, "stone")).to_be_visible()
    tab.ask("three")
    assert answered_by(tab) == "stone"
    tab.page.locator("#conversations li a").last.click()
    expect(picker(tab, "river")).to_be_visible()


def test_the_menu_is_a_choice_of_one_by_keyboard(tab: Tab) -> None:
    page, button = tab.page, picker(tab, "river")
    button.press("Enter")
    menu = page.get_by_role("menu", name="Choose the model that answers")
    expect(menu).to_be_visible()
    expect(button).to_have_attribute("aria-expanded", "true")
    river, stone = (menu.get_by_role("menuitemradio", name=name) for name in ("river", "stone"))
    expect(river).to_be_focused()
    expect(river).to_have_attribute("aria-checked", "true")
    expect(stone).to_have_attribute("aria-checked", "false")
    page.keyboard.press("ArrowDown")
    expect(stone).to_be_focused()
    page.keyboard.press("Escape")
    expect(menu).to_have_count(0)
    expect(button).to_be_focused()
    button.press("Enter")
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    expect(picker(tab, "stone")).to_be_focused()


def test_a_choice_that_can_not_be_stored_is_taken_back(tab: Tab, person: BrowserContext) -> None:
    tab.ask("one")
    assert answered_by(tab) == "river"
    person.set_offline(True)
    picker(tab, "river").click()
    tab.page.get_by_role("menuitemradio", name="stone").click()
    expect(tab.page.locator("#notice")).to_be_visible()
    expect(picker(tab, "river")).to_be_visible()
    person.set_offline(False)
    tab.forget_cut()


def test_on_a_phone_in_chinese_the_choice_is_there_too(
    tab: Tab, person: BrowserContext, site: LiveSite
) -> None:
    page = tab.page
    page.set_viewport_size({"width": 360, "height": 700})
    person.add_cookies([{"name": "django_language", "value": "zh-hans", "url": site.url}])
    tab.open()
    button = page.get_by_role("button", name="回答来自 river")
    button.click()
    page.get_by_role("menuitemradio", name="stone").click()
    expect(page.get_by_role("button", name="回答来自 stone")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
