"""Long chats: shown from their end, the rest as the reader comes near, and one answer's words touch nothing else.

Counts only; how long it takes is measured by `make bench-page`.
"""

from __future__ import annotations

import pytest
from playwright.sync_api import BrowserContext, expect

from inference.testing.script import script_text
from tests.bench.page.chat import long_chat, put_in
from tests.bench.page.measures import COUNT_CHANGES, Wire, load_all
from tests.e2e.tab import Tab
from tests.livesite import LiveSite

pytestmark = pytest.mark.browser

ARTICLES = "#transcript article"
NUM_AT_FIRST = 40
# The first message in sight and where it stands.
PLACE = """() => {
  const top = document.querySelector("#scroller").getBoundingClientRect().top;
  const shown = [...document.querySelectorAll("#transcript article")];
  const first = shown.find((node) => node.getBoundingClientRect().bottom > top);
  return [first.textContent.slice(0, 20), Math.round(first.getBoundingClientRect().top)];
}"""


def test_a_long_chat_is_shown_from_its_end_and_the_rest_comes_when_wanted(tab: Tab) -> None:
    page = tab.page
    chat = put_in(page, tab.url, long_chat(150))
    tab.open(f"/c/{chat}")
    expect(page.locator(ARTICLES)).to_have_count(NUM_AT_FIRST)
    expect(page.locator(ARTICLES).last).to_be_in_viewport()
    page.evaluate("document.querySelector('#scroller').scrollTop = 1000")
    expect(page.locator(ARTICLES)).to_have_count(2 * NUM_AT_FIRST)
    page.wait_for_timeout(300)
    before = page.evaluate(PLACE)
    page.evaluate("document.querySelector('.earlier').click()")
    expect(page.locator(ARTICLES)).to_have_count(3 * NUM_AT_FIRST)
    after = page.evaluate(PLACE)
    assert after[0] == before[0] and abs(after[1] - before[1]) <= 2, "what is read stays where it is"
    load_all(page)
    questions = page.locator("article.question .said").all_inner_texts()
    assert questions == [f"Question {number}" for number in range(1, 150, 2)]


def test_messages_that_could_not_be_had_are_asked_for_by_a_button(tab: Tab) -> None:
    page = tab.page
    chat = put_in(page, tab.url, long_chat(60))
    tab.open(f"/c/{chat}")
    expect(page.locator(ARTICLES)).to_have_count(NUM_AT_FIRST)
    page.route("**/messages?*before=*", lambda route: route.abort())
    page.evaluate("document.querySelector('#scroller').scrollTop = 0")
    page.wait_for_timeout(500)
    tab.forget_faults()
    expect(page.locator(ARTICLES)).to_have_count(NUM_AT_FIRST)
    page.unroute_all()
    page.get_by_role("button", name="Earlier messages").click()
    expect(page.locator(ARTICLES)).to_have_count(60)
    expect(page.locator(".earlier")).to_have_count(0)


def test_the_words_of_an_answer_touch_no_other_message_and_cross_the_wire_once(
    site: LiveSite, person: BrowserContext
) -> None:
    tab, wire = Tab(person.new_page(), site.url), Wire()
    wire.watch(tab.page)
    tab.open()
    chat = put_in(tab.page, tab.url, long_chat(40))
    tab.open(f"/c/{chat}")
    expect(tab.page.locator(ARTICLES)).to_have_count(40)
    num_bytes = []
    for num_words in (100, 200):
        num = tab.page.locator("article.answer").count()
        text = " ".join(f"word{i}" for i in range(num_words))
        tab.ask(script_text(text=text, first_delay_ms=400, delay_ms=3))
        expect(tab.page.locator("article.answer")).to_have_count(num + 1)
        tab.page.evaluate(COUNT_CHANGES)
        before = wire.now
        tab.wait_for_end()
        changes = tab.page.evaluate("window.counting.disconnect(), window.changes")
        assert tab.answer_text == text
        assert changes["elsewhere"] == 0
        assert changes["all"] <= 4 * num_words
        num_bytes.append(wire.since(before)[1])
    assert num_bytes[1] <= 2.5 * num_bytes[0], "twice the words are about twice the bytes"
    assert tab.faults() == []
