"""Where no WebSocket comes through, and where streams do not flow either, the page goes on as if nothing were amiss."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pytest
from playwright.sync_api import BrowserContext, Route, WebSocketRoute, expect

from tests.e2e.tab import Tab, until
from tests.livesite import LiveSite

pytestmark = pytest.mark.browser

WORDS = " ".join(f"word{i}" for i in range(40))
EVENTS = "**/api/generations/*/events"
Blocked: TypeAlias = Callable[..., Tab]


@pytest.fixture
def blocked(site: LiveSite, person: BrowserContext) -> Blocked:
    """Opens a tab whose WebSocket is closed at once; `events` says what becomes of its event streams."""

    def opened(events: Callable[[Route], None] | None = None) -> Tab:
        tab = Tab(person.new_page(), site.url)
        tab.page.route_web_socket("**/ws/chat", lambda route: route.close(code=1011))
        if events is not None:
            tab.page.route(EVENTS, events)
        tab.open()
        return tab

    return opened


def kind(tab: Tab) -> str:
    """How the page asked for the last answer it followed."""
    asked = tab.page.evaluate(
        "performance.getEntriesByType('resource').map(({ name }) => new URL(name).pathname)"
    )
    return "polling" if any(path.startswith("/api/messages/") for path in asked) else "events"


def test_without_a_websocket_answers_come_as_events_and_can_be_stopped(blocked: Blocked) -> None:
    tab = blocked()
    tab.ask_script(text=WORDS, delay_ms=20)
    tab.wait_for_text("word3")
    assert not tab.answer_text.endswith("word39")
    tab.wait_for_end()
    assert tab.answer_text == tab.stored_answer()["text"] == WORDS
    expect(tab.answer.locator(".truth")).to_contain_text("tok/s")
    assert kind(tab) == "events"
    tab.ask_script(text=WORDS, delay_ms=100)
    tab.wait_for_text("word2")
    tab.page.reload()
    tab.wait_for_text("word3")
    tab.stop_button.click()
    tab.wait_for_end()
    stored = tab.stored_answer()
    assert stored["state"] == "stopped"
    assert tab.answer_text == stored["text"].rstrip()
    expect(tab.page.locator("#banner")).to_be_hidden()
    tab.answer.get_by_role("button", name="Answer again").click()
    expect(tab.answer.locator(".variants")).to_contain_text("2/2")
    tab.forget_cut()
    assert tab.faults() == []


def test_where_streams_break_off_answers_are_asked_for_again_and_again(blocked: Blocked) -> None:
    tab = blocked(lambda route: route.abort())
    tab.ask_script(text=WORDS, delay_ms=60)
    tab.wait_for_text("word3")
    tab.wait_for_end()
    assert kind(tab) == "polling"
    assert tab.answer_text == tab.stored_answer()["text"] == WORDS
    expect(tab.answer.locator(".truth")).to_contain_text("tok/s")
    tab.forget_cut()


def test_where_streams_are_held_back_answers_are_asked_for_again_and_again(blocked: Blocked) -> None:
    held: list[Route] = []
    tab = blocked(lambda route: held.append(route))  # noqa: PLW0108 - it is marked by Playwright
    tab.ask_script(text=WORDS, delay_ms=150)
    tab.wait_for_text("word39")
    tab.wait_for_end()
    assert kind(tab) == "polling"
    assert tab.answer_text == tab.stored_answer()["text"] == WORDS
    tab.forget_cut()


def test_refusals_over_requests_say_why_and_keep_the_text(blocked: Blocked, site: LiveSite) -> None:
    tab = blocked()
    tab.ask("First")
    tab.wait_for_end()
    body = '{"error": {"message": "Full.", "type": "server_error", "param": null, "code": "queue_full"}}'
    tab.page.route("**/messages", lambda route: refuse_or_pass(route, body), times=1)
    tab.ask("Second")
    question = tab.page.locator("article.question").last
    expect(question).to_contain_text("try again in 7 s")
    question.get_by_role("button", name="Try again").click()
    tab.wait_for_text("You said: Second")
    tab.forget_faults()


def refuse_or_pass(route: Route, body: str) -> None:
    route.fulfill(status=503, headers={"Retry-After": "7", "Content-Type": "application/json"}, body=body)


def test_a_second_tab_follows_without_a_websocket(
    blocked: Blocked, site: LiveSite, person: BrowserContext
) -> None:
    tab = blocked()
    tab.ask_script(text=WORDS, delay_ms=60)
    tab.wait_for_text("word2")
    second = Tab(person.new_page(), site.url)
    second.open(f"/c/{tab.conversation()}")
    second.wait_for_text("word4")
    second.wait_for_end()
    tab.wait_for_end()
    assert second.answer_text == tab.answer_text == WORDS


def test_the_socket_takes_over_again_when_it_comes_through(site: LiveSite, person: BrowserContext) -> None:
    tab = Tab(person.new_page(), site.url)
    sockets: list[WebSocketRoute] = []
    is_blocked = True

    def take(route: WebSocketRoute) -> None:
        if is_blocked:
            route.close(code=1011)
            return
        route.connect_to_server()
        sockets.append(route)

    tab.page.route_web_socket("**/ws/chat", take)
    tab.open()
    tab.ask("First")
    tab.wait_for_end()
    assert kind(tab) == "events"
    is_blocked = False
    tab.page.evaluate("dispatchEvent(new Event('online'))")
    until(lambda: bool(sockets), tab.page)
    tab.ask_script(text=WORDS, delay_ms=20)
    expect(tab.page.locator("article.answer")).to_have_count(2)
    tab.wait_for_end()
    assert tab.answer_text == WORDS
    tab.forget_cut()
    assert tab.faults() == []
