"""Asking and answering in the browser: what is shown is what is stored, whatever happens to tab, line or engine."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Route, WebSocketRoute, expect

from tests.e2e.tab import Tab, until
from tests.livesite import LiveSite

pytestmark = pytest.mark.browser

WORDS = " ".join(f"word{i}" for i in range(60))
PASSWORD = "a-long-pass-phrase-7"
COUNT_STORED = "SELECT count(*) FROM semcache_cacheentry WHERE question LIKE '%%' || %s"


def test_a_new_account_can_ask(site: LiveSite, context: BrowserContext) -> None:
    tab = Tab(context.new_page(), site.url)
    page = tab.page
    page.goto(f"{site.url}/signup")
    page.get_by_label("Username").fill("grace")
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_label("Password confirmation").fill(PASSWORD)
    page.get_by_role("button", name="Make an account").click()
    tab.ask("Hello there")
    tab.wait_for_end()
    assert tab.answer_text == "You said: Hello there (2 words)"
    expect(page.locator("#conversations")).to_contain_text("Hello there")
    page.get_by_role("button", name="Sign out").click()
    page.get_by_label("Username").fill("grace")
    page.get_by_label("Password", exact=True).fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_be_visible()
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("link", name="Hello there").click()
    expect(tab.answer).to_contain_text("You said: Hello there")
    assert tab.faults() == []


def test_a_guests_answer_streams_and_equals_the_stored_one(site: LiveSite, context: BrowserContext) -> None:
    tab = Tab(context.new_page(), site.url)
    tab.enter_as_guest()
    tab.ask_script(text=WORDS, delay_ms=10)
    tab.wait_for_text("word3")
    assert tab.page.locator("#transcript").get_attribute("aria-busy") == "true"
    expect(tab.status).to_have_text("Answering")
    assert not tab.answer_text.endswith("word59")
    tab.wait_for_end()
    assert tab.answer_text == tab.stored_answer()["text"] == WORDS
    expect(tab.status).to_have_text("Answer complete")
    expect(tab.answer.locator(".truth")).to_contain_text("tok/s")
    assert tab.faults() == []


def test_reload_in_mid_answer_goes_on_and_can_be_stopped(tab: Tab) -> None:
    tab.ask_script(text=WORDS, delay_ms=60)
    tab.wait_for_text("word2")
    conversation = tab.conversation()
    tab.page.reload()
    tab.wait_for_text("word5")
    assert tab.answer_text.startswith("word0 word1 word2")
    expect(tab.stop_button).to_be_enabled()
    tab.stop_button.click()
    tab.wait_for_end()
    expect(tab.answer).to_contain_text("Stopped")
    stored = tab.stored_answer()
    assert tab.conversation() == conversation
    assert stored["state"] == "stopped"
    # Markdown shows no blank at the end of a paragraph.
    assert tab.answer_text == stored["text"].rstrip()
    assert "word59" not in stored["text"]


def test_reload_after_the_end_shows_the_stored_answer(tab: Tab) -> None:
    tab.ask_script(text=WORDS)
    tab.wait_for_end()
    before = tab.answer.locator(".truth > span").first.text_content()
    tab.page.reload()
    tab.wait_for_end()
    assert tab.answer_text == WORDS
    assert tab.answer.locator(".truth > span").first.text_content() == before


def test_a_second_tab_follows(tab: Tab, person: BrowserContext, site: LiveSite) -> None:
    tab.ask("First")
    tab.wait_for_end()
    second = Tab(person.new_page(), site.url)
    second.page.goto(tab.page.url)
    second.wait_for_end()
    tab.ask_script(text=WORDS, delay_ms=15)
    expect(second.page.locator("article.answer")).to_have_count(2)
    second.wait_for_end()
    tab.wait_for_end()
    assert second.answer_text == tab.answer_text == WORDS
    assert second.faults() == []


def test_another_chat_and_back_shows_the_whole_answer(tab: Tab) -> None:
    tab.ask_script(text=WORDS, delay_ms=25)
    tab.wait_for_text("word2")
    tab.new_chat()
    tab.page.locator("#conversations a").first.click()
    tab.wait_for_text("word4")
    tab.wait_for_end()
    assert tab.answer_text == WORDS


class Line:
    """The tab's WebSocket, which can be cut and mended."""

    def __init__(self) -> None:
        self.is_cut = False
        self.open: list[WebSocketRoute] = []

    def take(self, route: WebSocketRoute) -> None:
        if self.is_cut:
            route.close(code=4000)
            return
        route.connect_to_server()
        self.open.append(route)

    def cut(self) -> None:
        self.is_cut = True
        for route in self.open:
            route.close(code=4000)
        self.open.clear()


def test_a_cut_line_resumes_and_keeps_what_was_asked(site: LiveSite, person: BrowserContext) -> None:
    line = Line()
    tab = Tab(person.new_page(), site.url)
    tab.page.route_web_socket("**/ws/chat", line.take)
    tab.open()
    tab.ask_script(text=WORDS, delay_ms=40)
    tab.wait_for_text("word2")
    person.set_offline(True)
    line.cut()
    expect(tab.page.locator("#banner")).to_contain_text("You are offline")
    line.is_cut = False
    person.set_offline(False)
    tab.wait_for_end()
    assert tab.answer_text == tab.stored_answer()["text"] == WORDS
    line.cut()
    tab.ask("Asked while the line was down")
    assert tab.page.input_value("#message") == ""
    expect(tab.page.locator(".question.pending")).to_have_count(1)
    line.is_cut = False
    tab.wait_for_text("You said: Asked while the line was down")
    tab.wait_for_end()
    assert [m["text"] for m in tab.stored()["messages"] if m["role"] == "user"][1:] == [
        "Asked while the line was down"
    ]
    tab.forget_cut()
    assert tab.faults() == []


def test_a_message_that_was_not_accepted_outlives_a_reload(site: LiveSite, person: BrowserContext) -> None:
    line = Line()
    tab = Tab(person.new_page(), site.url)
    tab.page.route_web_socket("**/ws/chat", line.take)
    tab.open()
    line.cut()
    tab.ask("Do not lose me")
    expect(tab.page.locator(".question.pending")).to_have_count(1)
    tab.page.reload()
    expect(tab.page.locator(".question.pending")).to_contain_text("Do not lose me")
    line.is_cut = False
    tab.wait_for_text("You said: Do not lose me")
    tab.forget_cut()
    assert tab.faults() == []


def test_a_killed_core_leaves_a_clear_end_and_a_retry_that_works(tab: Tab, site: LiveSite) -> None:
    tab.ask_script(text=WORDS, delay_ms=40)
    tab.wait_for_text("word2")
    os.kill(core_of(site), signal.SIGKILL)
    trouble = tab.answer.get_by_role("alert")
    expect(trouble).to_contain_text("What was written is kept.")
    stored = tab.stored_answer()
    assert stored["state"] in ("failed", "interrupted")
    assert tab.answer_text == stored["text"].rstrip() != ""
    until(lambda: tab.page.request.get(f"{site.url}/health/ready").ok, tab.page)
    trouble.get_by_role("button", name="Try again").click()
    expect(tab.answer.locator(".variants")).to_contain_text("2/2")
    tab.wait_for_end()
    assert tab.answer_text == WORDS
    tab.answer.get_by_role("button", name="Previous answer").click()
    expect(tab.answer.locator(".variants")).to_contain_text("1/2")
    assert tab.answer_text == stored["text"].rstrip()


def core_of(site: LiveSite) -> int:
    """The engine's core: the one child of its front."""
    tasks = Path(f"/proc/{site.engine.pid}/task").iterdir()
    (pid,) = [pid for task in tasks for pid in (task / "children").read_text().split()]
    return int(pid)


def test_a_cached_answer_is_marked_also_as_stale_and_can_be_asked_fresh(tab: Tab, site: LiveSite) -> None:
    question = "What is the weather like on the first floor?"
    tab.ask(question)
    tab.wait_for_end()
    until(lambda: site.sql("SELECT count(*) FROM semcache_cacheentry") != [(0,)], tab.page)
    tab.new_chat()
    tab.ask(question)
    tab.wait_for_end()
    expect(tab.answer.locator(".truth")).to_contain_text("from cache, same question")
    expect(tab.answer.locator(".truth")).not_to_contain_text("refreshed")
    site.sql("UPDATE chat_generation SET cache_is_stale = true WHERE origin = 'exact'")
    tab.page.reload()
    expect(tab.answer.locator(".truth")).to_contain_text("just now · being refreshed")
    tab.answer.get_by_role("button", name="Ask the model").click()
    expect(tab.answer.locator(".variants")).to_contain_text("2/2")
    tab.wait_for_end()
    expect(tab.answer.locator(".truth")).not_to_contain_text("cache")


def test_a_thumb_down_on_a_cached_answer_says_what_it_does_and_does_it(tab: Tab, site: LiveSite) -> None:
    question = "Will umbrellas be of use to lighthouse keepers?"
    tab.ask(question)
    tab.wait_for_end()
    up, down = (tab.answer.get_by_role("button", name=name) for name in ("Good answer", "Bad answer"))
    up.press("Enter")
    expect(up).to_have_attribute("aria-pressed", "true")
    expect(tab.status).to_have_text("Thank you.")
    until(lambda: site.sql(COUNT_STORED, question[5:]) != [(0,)], tab.page)
    tab.new_chat()
    tab.ask(question)
    tab.wait_for_end()
    expect(tab.answer.locator(".truth")).to_contain_text("from cache, same question")
    down.focus()
    tab.page.keyboard.press("Space")
    expect(down).to_have_attribute("aria-pressed", "true")
    expect(tab.answer.locator(".rated")).to_contain_text("not given to this question any more")
    expect(tab.status).to_contain_text("not given to this question any more")
    assert site.sql(COUNT_STORED, question[5:]) == [(0,)]
    tab.page.reload()
    expect(down).to_have_attribute("aria-pressed", "true")
    expect(up).to_have_attribute("aria-pressed", "false")
    tab.new_chat()
    tab.ask(question)
    tab.wait_for_end()
    expect(tab.answer.locator(".truth")).not_to_contain_text("cache")


def test_a_thumb_that_can_not_be_kept_is_taken_back(tab: Tab) -> None:
    tab.ask("First")
    tab.wait_for_end()
    tab.page.route("**/feedback", lambda route: route.abort())
    down = tab.answer.get_by_role("button", name="Bad answer")
    down.click()
    expect(tab.page.locator("#notice")).to_contain_text("could not be saved")
    expect(down).to_have_attribute("aria-pressed", "false")
    expect(tab.answer.locator(".rated")).to_have_count(0)
    tab.forget_faults()


def test_rename_search_and_delete(tab: Tab) -> None:
    page = tab.page
    tab.ask("Apples and pears")
    tab.wait_for_end()
    tab.new_chat()
    tab.ask("Rivers and lakes")
    tab.wait_for_end()
    page.get_by_role("link", name="Apples and pears").hover()
    page.get_by_role("button", name="More about “Apples and pears”").click()
    page.get_by_role("menuitem", name="Rename").click()
    page.get_by_label("New title").fill("Fruit")
    page.press(".rename", "Enter")
    expect(page.get_by_role("link", name="Fruit")).to_be_visible()
    page.fill("#search", "pears")
    expect(page.locator("#conversations li")).to_have_count(1)
    expect(page.get_by_role("link", name="Fruit")).to_be_visible()
    page.fill("#search", "")
    expect(page.locator("#conversations li")).to_have_count(2)
    page.get_by_role("link", name="Fruit").hover()
    page.get_by_role("button", name="More about “Fruit”").click()
    page.get_by_role("menuitem", name="Delete").click()
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.locator("#conversations li")).to_have_count(1)
    page.reload()
    expect(page.locator("#conversations li")).to_have_count(1)


def test_a_message_that_another_tab_settled_is_shown_with_its_answer(tab: Tab) -> None:
    tab.ask("First")  # then the line is open, and what is asked next leaves before it is settled
    tab.wait_for_end()
    tab.page.fill("#message", "Hello from here")
    tab.page.evaluate("document.querySelector('#composer').requestSubmit(); localStorage.clear()")
    expect(tab.page.locator("article.answer")).to_have_count(2)
    tab.wait_for_end()
    assert tab.answer_text == "You said: Hello from here (3 words)"
    expect(tab.page.locator("article.question.pending")).to_have_count(0)


def test_a_late_list_of_messages_hides_nothing_that_was_asked_meanwhile(tab: Tab) -> None:
    tab.ask("First")
    tab.wait_for_end()
    address = f"**/api/conversations/{tab.conversation()}"
    held: list[Route] = []
    tab.page.route(address, lambda route: held.append(route), times=1)  # noqa: PLW0108 - it is marked by Playwright
    tab.new_chat()
    tab.page.go_back()
    until(lambda: bool(held), tab.page)
    old = held[0].fetch()
    tab.ask("Second question")
    expect(tab.page.locator("article.question.pending")).to_have_count(0)
    held[0].fulfill(response=old)
    expect(tab.page.locator("article.question")).to_have_count(2)
    tab.wait_for_end()
    assert tab.answer_text == "You said: Second question (2 words)"


def test_a_text_that_cannot_be_kept_stays_in_the_field(tab: Tab) -> None:
    tab.page.evaluate("""() => {
      const set = Storage.prototype.setItem;
      Storage.prototype.setItem = function (key, value) {
        if (key.startsWith("rill.outbox")) throw new DOMException("full", "QuotaExceededError");
        set.call(this, key, value);
      };
    }""")
    tab.page.fill("#message", "Do not lose me")
    with tab.page.expect_event("pageerror"):
        tab.page.press("#message", "Enter")
    assert tab.page.input_value("#message") == "Do not lose me"
    tab.forget_faults()


def test_whoever_comes_back_too_late_reads_why_the_answer_ended(tab: Tab, site: LiveSite) -> None:
    tab.ask("Is anybody there?")
    tab.wait_for_end()
    conversation = tab.page.url.rsplit("/", 1)[1]
    ended = "state = 'interrupted' WHERE conversation_id = %s AND role = 'assistant'"
    (answer,) = site.sql(f"UPDATE chat_message SET {ended} RETURNING id", conversation)[0]
    how = "state = 'interrupted', finish_reason = 'orphaned'"
    site.sql(f"UPDATE chat_generation SET {how} WHERE message_id = %s", answer)
    tab.page.reload()
    expect(tab.answer.get_by_role("alert")).to_contain_text("no page was open to read it")
