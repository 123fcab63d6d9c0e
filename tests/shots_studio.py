"""What the pictures are taken with: tabs of people who are signed in, in which scripts look like ordinary questions.

The scripts travel between page and server only.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, Route, ViewportSize, WebSocketRoute

from inference.testing.script import PREFIX, script_text
from tests.e2e.people import let_in
from tests.e2e.tab import Tab
from tests.livesite import LiveSite
from tests.shots_texts import ANSWERS, READS_LONG

FOLDER = Path("shots")
DESKTOP: ViewportSize = {"width": 1280, "height": 832}
PHONE: ViewportSize = {"width": 390, "height": 844}


@dataclass(slots=True)
class Studio:
    """Makes tabs, each with somebody new in it."""

    site: LiveSite
    browser: Browser
    sessions: list[str]

    def tab(self, size: ViewportSize, *, is_signed_in: bool = True, **options: Any) -> Tab:
        context = self.browser.new_context(viewport=size, locale="en-GB", **options)
        page = context.new_page()
        page.route_web_socket("**/ws/chat", give_scripts)
        page.route("**/api/conversations**", give_titles)
        tab = Tab(page, self.site.url)
        if is_signed_in:
            let_in(context, self.site, self.sessions.pop(0))
            tab.open()
        return tab


def give_scripts(route: WebSocketRoute) -> None:
    """Swaps a known question for the script of its answer on the way out, and back in titles on the way in.

    The scripted engine reads a prompt at once; what a long one looks like is said in its place.
    """
    server = route.connect_to_server()
    reads_long: list[str] = []

    def outward(message: str | bytes) -> None:
        frame = json.loads(message)
        if frame.get("text") == READS_LONG:
            reads_long.append(READS_LONG)
        if frame.get("text") in ANSWERS:
            frame["text"] = script_text(**ANSWERS[frame["text"]])
        server.send(json.dumps(frame))

    def inward(message: str | bytes) -> None:
        frame = json.loads(message)
        for titled in (frame, frame.get("item") or {}):
            if "title" in titled:
                titled["title"] = question_of(titled["title"])
        route.send(json.dumps(frame))
        if frame["type"] == "accepted" and reads_long:
            reading = {"type": "prefill", "generation": frame["generation"], "done": 8192, "total": 20_480}
            route.send(json.dumps(reading))

    route.on_message(outward)
    server.on_message(inward)


def give_titles(route: Route) -> None:
    """The same for what the page asks for: scripts become their questions again."""
    answer = route.fetch()
    body = answer.json()
    rows = body["items"] if isinstance(body, dict) and "items" in body else [body]
    for row in rows:
        for name in ("title", "text"):
            if name in row:
                row[name] = question_of(row[name])
    route.fulfill(response=answer, json=body)


def question_of(text: str) -> str:
    """The question whose script begins like `text`; every other text as it is."""
    if not text.startswith(PREFIX):
        return text
    begun = text.rstrip("…").rstrip()
    return next(
        (question for question, script in ANSWERS.items() if script_text(**script).startswith(begun)), text
    )


def shoot(page: Page, name: str, *, whole: bool = False) -> None:
    """A picture of what the window shows, or of the whole page."""
    page.mouse.move(0, 0)
    page.screenshot(path=FOLDER / f"{name}.png", animations="disabled", full_page=whole)
