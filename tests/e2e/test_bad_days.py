"""Refused, signed out, in two tabs at once: what a person wrote is kept, sent once, and they are told what to do."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, WebSocketRoute, expect

from tests.e2e.people import let_in
from tests.e2e.tab import Tab
from tests.livesite import LiveSite

pytestmark = pytest.mark.browser

WORDS = " ".join(f"word{i}" for i in range(40))
# Both clocks are this machine's: neither tab has heard of the other's message yet.
SEND_AT = """at => setTimeout(() => document.getElementById("composer").requestSubmit(), at - Date.now())"""
# The same person signs in once more.
AGAIN_KEY = "signed0in0again0" * 2
AGAIN = "INSERT INTO django_session SELECT %s, session_data, expire_date FROM django_session WHERE session_key = %s"
SOON = "2100-01-01T12:00:00Z"


class Refusing:
    """The tab's line, on which the next message is refused."""

    def __init__(self, **refusal: object) -> None:
        self.refusal: dict[str, object] | None = refusal

    def take(self, route: WebSocketRoute) -> None:
        server = route.connect_to_server()
        route.on_message(lambda text: self._pass(route, server.send, str(text)))

    def _pass(self, route: WebSocketRoute, send: Callable[[str], None], text: str) -> None:
        frame: dict[str, Any] = json.loads(text)
        if frame["type"] != "send" or self.refusal is None:
            send(text)
            return
        error = {"type": "error", "message": "No.", "client_message_id": frame["client_message_id"]}
        route.send(json.dumps(error | self.refusal))
        self.refusal = None


@pytest.mark.parametrize(
    ("refusal", "words"),
    [
        ({"code": "queue_full", "retry_after_s": 7.0}, "try again in 7 s"),
        ({"code": "quota_exceeded", "resets_at": SOON}, "2100"),
        ({"code": "storage_unavailable", "retry_after_s": 2.0}, "can store and read nothing"),
    ],
)
def test_a_refusal_says_why_and_until_when_and_the_text_goes_out_again(
    site: LiveSite, person: BrowserContext, refusal: dict[str, object], words: str
) -> None:
    tab = Tab(person.new_page(), site.url)
    tab.page.route_web_socket("**/ws/chat", Refusing(**refusal).take)
    tab.open()
    tab.ask("Is there room for me?")
    question = tab.page.locator("article.question").last
    expect(question).to_contain_text(words)
    expect(question).to_contain_text("Your text is kept")
    tab.page.reload()
    expect(question).to_contain_text(words)
    question.get_by_role("button", name="Try again").click()
    tab.wait_for_text("You said: Is there room for me?")
    assert [m["role"] for m in tab.stored()["messages"]] == ["user", "assistant"]
    assert tab.faults() == []


def test_two_tabs_that_send_at_once_are_both_heard_one_after_the_other(
    tab: Tab, person: BrowserContext, site: LiveSite
) -> None:
    tab.ask("First")
    tab.wait_for_end()
    second = Tab(person.new_page(), site.url)
    second.open(f"/c/{tab.conversation()}")
    second.wait_for_end()
    for each, text in ((tab, "From the one"), (second, "From the other")):
        each.page.fill("#message", text)
    at = (time.time() + 1.5) * 1000
    for each in (tab, second):
        each.page.evaluate(SEND_AT, at)
    for each in (tab, second):
        expect(each.page.locator("article.answer")).to_have_count(3)
        each.wait_for_end()
        expect(each.page.locator("article.question.pending")).to_have_count(0)
    messages = tab.stored()["messages"]
    asked = [message["text"] for message in messages if message["role"] == "user"]
    assert sorted(asked[1:]) == ["From the one", "From the other"]
    parents = {message["id"]: message["parent"] for message in messages}
    assert len(set(parents.values())) == len(parents), "one branch"


def test_what_a_closed_tab_left_in_the_outbox_another_one_sends_once(
    tab: Tab, person: BrowserContext, site: LiveSite
) -> None:
    tab.ask("First")
    tab.wait_for_end()
    second = Tab(person.new_page(), site.url)
    second.page.route_web_socket("**/ws/chat", lambda route: None)  # opens, and nothing comes through
    second.page.route("**/health/live", lambda route: route.abort())
    second.open(f"/c/{tab.conversation()}")
    second.ask("From a tab that is closed")
    expect(second.page.locator(".question.pending")).to_have_count(1)
    expect(tab.page.locator(".question.pending")).to_contain_text("From a tab that is closed")
    second.page.close()
    tab.wait_for_text("You said: From a tab that is closed")
    texts = [message["text"] for message in tab.stored()["messages"] if message["role"] == "user"]
    assert texts == ["First", "From a tab that is closed"]


def test_whoever_is_signed_out_in_mid_answer_finds_all_of_it_again(
    tab: Tab, person: BrowserContext, site: LiveSite
) -> None:
    session = key(person)
    tab.ask_script(text=WORDS, delay_ms=100)
    tab.wait_for_text("word2 ")
    tab.page.fill("#message", "a thought for later")
    site.sql(AGAIN, AGAIN_KEY, session)
    site.sql("DELETE FROM django_session WHERE session_key = %s", session)
    banner = tab.page.locator("#banner")
    expect(banner).to_contain_text("You are signed out. Your text is kept")
    expect(banner.get_by_role("link", name="Sign in")).to_be_visible()
    let_in(person, site, AGAIN_KEY)
    tab.page.reload()
    tab.wait_for_text("word39")
    tab.wait_for_end()
    assert tab.answer_text == tab.stored_answer()["text"] == WORDS
    assert tab.page.input_value("#message") == "a thought for later"
    tab.forget_faults()


def key(person: BrowserContext) -> str:
    return next(str(cookie["value"]) for cookie in person.cookies() if cookie["name"] == "sessionid")
