"""What can be done with a message: change it, go between its versions, let it go on, rate it, copy it."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import BrowserContext, Locator, expect

from tests.e2e.tab import Tab, until
from tests.livesite import LiveSite

pytestmark = pytest.mark.browser

RATED = "SELECT verdict, reason FROM chat_feedback WHERE message_id = %s"

# Every text of the first answer that could have been seen.
RECORD_TEXTS = """() => {
  window.texts = new Set();
  const note = () => window.texts.add(document.querySelector("article.answer .text")?.textContent ?? "");
  new MutationObserver(() => requestAnimationFrame(note)).observe(
    document.querySelector("#transcript"), { childList: true, subtree: true });
}"""


def first_question(tab: Tab) -> Locator:
    return tab.page.locator("article.question").first


def texts(tab: Tab) -> list[str]:
    """Of the shown branch, in order."""
    return tab.page.locator("article .said, article .text").all_inner_texts()


def ask(tab: Tab, text: str) -> None:
    """Asks and waits for the end of the new answer."""
    num = tab.page.locator("article.answer").count()
    tab.ask(text)
    expect(tab.page.locator("article.answer")).to_have_count(num + 1)
    tab.wait_for_end()


def test_a_changed_question_is_a_branch_and_the_shown_one_outlives_a_reload(tab: Tab) -> None:
    page = tab.page
    ask(tab, "Alpha")
    ask(tab, "Beta")
    old = ["Alpha", "You said: Alpha (1 word)", "Beta", "You said: Beta (1 word)"]
    assert texts(tab) == old
    first_question(tab).get_by_role("button", name="Edit").press("Enter")
    field = page.get_by_label("Your question, changed")
    expect(field).to_be_focused()
    page.keyboard.press("Escape")
    expect(first_question(tab).get_by_role("button", name="Edit")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.type(" and Omega")
    page.keyboard.press("Enter")
    expect(first_question(tab).locator(".variants")).to_contain_text("2/2")
    expect(page.locator("#message")).to_be_focused()
    tab.wait_for_end()
    new = ["Alpha and Omega", "You said: Alpha and Omega (3 words)"]
    assert texts(tab) == new
    first_question(tab).get_by_role("button", name="Previous version").press("Enter")
    expect(first_question(tab).locator(".variants")).to_contain_text("1/2")
    expect(first_question(tab).get_by_role("button", name="Next version")).to_be_focused()
    assert texts(tab) == old
    until(lambda: len(tab.stored_branch()) == 4, page)
    page.reload()
    tab.wait_for_end()
    assert texts(tab) == old
    first_question(tab).get_by_role("button", name="Next version").click()
    expect(page.locator("article.answer")).to_have_count(1)
    assert texts(tab) == new
    ask(tab, "Gamma")
    assert texts(tab) == [*new, "Gamma", "You said: Gamma (1 word)"]


def test_a_question_is_put_right_without_asking_again(tab: Tab, person: BrowserContext) -> None:
    page = tab.page
    ask(tab, "helo")
    ask(tab, "and then?")
    second = Tab(person.new_page(), tab.url)
    second.open(page.url.removeprefix(tab.url))
    expect(second.page.locator("article.question")).to_have_count(2)
    first_question(tab).hover()
    first_question(tab).get_by_role("button", name="Edit").click()
    only = page.get_by_role("button", name="Save only")
    expect(only).to_be_disabled()  # nothing is changed yet
    page.get_by_label("Your question, changed").fill("hello")
    only.click()
    for other in (tab, second):
        expect(first_question(other).locator(".said")).to_have_text("hello")
    expect(page.locator("article.answer .text")).to_have_text(
        ["You said: helo (1 word)", "You said: and then? (2 words)"]
    )
    assert tab.stored_branch()[0]["text"] == "hello"
    first_question(tab).get_by_role("button", name="Previous version").click()
    expect(first_question(tab).locator(".said")).to_have_text("helo")
    assert second.faults() == []


def test_what_could_not_be_put_right_stays_in_its_field(tab: Tab) -> None:
    page = tab.page
    ask(tab, "helo")
    page.route("**/reword", lambda route: route.abort())
    first_question(tab).hover()
    first_question(tab).get_by_role("button", name="Edit").click()
    page.get_by_label("Your question, changed").fill("hello")
    page.get_by_role("button", name="Save only").click()
    expect(page.locator("#notice")).to_be_visible()
    expect(page.get_by_label("Your question, changed")).to_have_value("hello")
    tab.forget_faults()


def test_changing_a_question_stops_what_is_answered_below_it(tab: Tab) -> None:
    tab.ask_script(text=" ".join(f"word{i}" for i in range(200)), delay_ms=50)
    tab.wait_for_text("word2")
    first_question(tab).get_by_role("button", name="Edit").click()
    tab.page.get_by_label("Your question, changed").fill("Short")
    tab.page.get_by_role("button", name="Send", exact=True).first.click()
    tab.wait_for_text("You said: Short")
    tab.wait_for_end()
    answers = [m for m in tab.stored()["messages"] if m["role"] == "assistant"]
    assert [answer["state"] for answer in answers] == ["stopped", "complete"]


def test_a_change_that_is_refused_goes_back_into_its_field(tab: Tab, site: LiveSite) -> None:
    page = tab.page
    ask(tab, "Alpha")
    first_question(tab).get_by_role("button", name="Edit").click()
    field = page.get_by_label("Your question, changed")
    field.evaluate("field => field.removeAttribute('maxlength')")
    field.fill("x" * 300_000)
    page.keyboard.press("Enter")
    expect(page.locator("article.question .note")).to_contain_text("too long")
    assert page.locator("article.question").count() == 1
    page.locator("article.question .note").get_by_role("button", name="Edit").click()
    assert len(field.input_value()) == 300_000
    field.fill("Beta")
    page.keyboard.press("Enter")
    tab.wait_for_text("You said: Beta")
    tab.wait_for_end()
    expect(first_question(tab).locator(".variants")).to_contain_text("2/2")


def test_an_answer_that_was_cut_goes_on_without_losing_what_is_read(tab: Tab) -> None:
    tab.ask_script(text="one two three", finish="length")
    tab.wait_for_end()
    expect(tab.answer).to_contain_text("reached its length limit")
    tab.page.evaluate(RECORD_TEXTS)
    tab.answer.get_by_role("button", name="Continue").click()
    expect(tab.answer.locator(".variants")).to_contain_text("2/2")
    tab.wait_for_end()
    assert tab.answer_text == "one two three"
    assert tab.page.evaluate("[...window.texts]") == ["one two three"], "it was never gone"


def test_a_reason_goes_with_a_thumb_which_is_taken_back_by_the_same_button(tab: Tab, site: LiveSite) -> None:
    page = tab.page
    ask(tab, "Alpha")
    answer = tab.stored_answer()["id"]
    down = tab.answer.get_by_role("button", name="Bad answer")
    down.press("Enter")
    expect(down).to_be_focused()
    reason = page.get_by_label("What was wrong? (optional)")
    reason.fill("It only repeats.")
    reason.press("Enter")
    expect(tab.answer).to_contain_text("Your reason is kept.")
    assert site.sql(RATED, answer) == [("down", "It only repeats.")]
    down.press("Enter")
    expect(down).to_have_attribute("aria-pressed", "false")
    expect(tab.status).to_have_text("Taken back.")
    assert site.sql(RATED, answer) == []
    tab.answer.get_by_role("button", name="Good answer").press("Enter")
    page.get_by_label("What was good about it? (optional)").press("Escape")
    expect(tab.answer.locator(".reason")).to_have_count(0)
    until(lambda: site.sql(RATED, answer) == [("up", "")], page)


def test_messages_are_copied_as_markdown_and_formulas_as_tex(tab: Tab) -> None:
    page = tab.page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    source = "**Bold** and $x^2$ of\n\n$$\n\\frac{1}{2}\n$$\n\nend"
    tab.ask_script(text=source)
    tab.wait_for_end()
    tab.answer.get_by_role("button", name="Copy").click()
    assert page.evaluate("navigator.clipboard.readText()") == source
    expect(tab.answer.locator("math")).to_have_count(2)
    tab.answer.locator(".text").evaluate("node => getSelection().selectAllChildren(node)")
    page.keyboard.press("Control+c")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert re.sub(r"\n+", "\n", copied) == "Bold and $x^2$ of\n$$\n\\frac{1}{2}\n$$\nend"


def test_a_message_says_when_it_was_written(tab: Tab, site: LiveSite) -> None:
    ask(tab, "Alpha")
    times = tab.page.locator("article time")
    expect(times).to_have_count(2)
    assert re.fullmatch(r"\d\d:\d\d", times.first.inner_text())
    site.sql(
        "UPDATE chat_message SET created_at = '2026-01-05 10:00Z' WHERE id = %s", tab.stored_answer()["id"]
    )
    tab.page.reload()
    tab.wait_for_end()
    expect(times.last).to_contain_text("5 Jan 2026")
