"""`python -m tests.shots`: pictures of the page's main states in `shots/`, to be looked at by a person.

Runs the real site over the scripted engine. The scripts travel between page and server, so that the pictures show
ordinary questions. Needs Chromium; starts throwaway servers where DATABASE_URL names none.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, ViewportSize, WebSocketRoute, expect

from inference.testing.script import PREFIX, script_text
from tests.e2e.people import let_in, signed_in
from tests.e2e.tab import Tab, launched_browser
from tests.livesite import LiveSite, live_site
from tests.plugins.browser import chromium
from tests.plugins.servers import Servers
from tests.shots_texts import ANSWERS

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
        tab = Tab(page, self.site.url)
        if is_signed_in:
            let_in(context, self.site, self.sessions.pop(0))
            tab.open()
        return tab


def main() -> int:
    if chromium() is None:
        print("shots: Chromium is missing", file=sys.stderr)
        return 1
    FOLDER.mkdir(exist_ok=True)
    # Two answers at once, so that further questions wait in the queue, and time to take their pictures.
    settings = {"ENGINE_MAX_BATCH": "2", "ENGINE_STEP_TIMEOUT_S": "600", "SEMCACHE_BUDGET_MS": "5000"}
    with servers(), live_site("shots", **settings) as site, launched_browser() as browser:
        studio = Studio(site, browser, signed_in(site, 8))
        other_pages(studio)
        desktop(studio)
        waiting(studio)
        phone(studio)
        dark(studio)
    print(f"shots: {len(list(FOLDER.glob('*.png')))} pictures in {FOLDER}/")
    return 0


def desktop(studio: Studio) -> None:
    tab = studio.tab(DESKTOP)
    page = tab.page
    shoot(page, "02-empty")
    tab.ask("Why is the sky blue?")
    tab.wait_for_text("Air scatters")
    shoot(page, "03-streaming")
    tab.wait_for_end()
    tab.ask("And why are sunsets red?")
    expect(page.locator("article.answer")).to_have_count(2)
    tab.wait_for_end()
    shoot(page, "04-complete")
    tab.answer.locator(".truth").click()
    shoot(page, "05-where-the-time-went")
    tab.new_chat()
    tab.ask("Will it rain on Sunday?")
    tab.wait_for_end()
    tab.new_chat()
    tab.ask("Will it rain on Sunday?")
    tab.wait_for_end()
    shoot(page, "06-from-cache")
    tab.new_chat()
    tab.ask("How does a binary search work?")
    tab.wait_for_end()
    page.locator("#scroller").evaluate("box => box.scrollTo(0, 0)")
    shoot(page, "07-long-answer")
    page.locator("#scroller").evaluate("box => box.scrollTo(0, 620)")
    shoot(page, "08-code-and-table")
    tab.new_chat()
    tab.ask("Tell me something that breaks.")
    expect(tab.answer.get_by_role("alert")).to_be_visible()
    shoot(page, "09-failed")
    page.get_by_role("button", name="Delete “Tell").first.evaluate("button => button.click()")
    shoot(page, "10-delete")
    page.get_by_role("button", name="Keep").click()
    page.get_by_role("button", name="Show or hide the chats").click()
    shoot(page, "11-icon-rail")
    page.context.close()


def waiting(studio: Studio) -> None:
    """Reading and queued: others keep the engine busy."""
    tabs = []
    for _ in range(4):
        tab = studio.tab(DESKTOP)
        tab.ask("Think for a long time.")
        expect(tab.answer.locator(".waiting")).to_be_visible()
        tabs.append(tab)
    expect(tabs[3].answer.locator(".waiting")).to_contain_text("In the queue")
    shoot(tabs[0].page, "12-waiting")
    shoot(tabs[3].page, "13-queued")
    for tab in tabs:
        tab.stop_button.click()
        tab.wait_for_end()
        tab.page.context.close()


def phone(studio: Studio) -> None:
    tab = studio.tab(PHONE, is_mobile=True, has_touch=True)
    shoot(tab.page, "20-phone-empty")
    for num, question in enumerate(("Why is the sky blue?", "How does a binary search work?"), start=1):
        tab.page.fill("#message", question)
        tab.page.get_by_role("button", name="Send").click()
        expect(tab.page.locator("article.answer")).to_have_count(num)
        tab.wait_for_end()
    shoot(tab.page, "21-phone-answer")
    tab.page.get_by_role("button", name="Chats").click()
    tab.page.wait_for_timeout(300)
    shoot(tab.page, "22-phone-drawer")
    tab.page.context.close()


def dark(studio: Studio) -> None:
    tab = studio.tab(DESKTOP, color_scheme="dark")
    shoot(tab.page, "31-dark-empty")
    tab.ask("Why is the sky blue?")
    tab.wait_for_end()
    tab.answer.locator(".truth").click()
    tab.ask("How does a binary search work?")
    expect(tab.page.locator("article.answer")).to_have_count(2)
    tab.wait_for_end()
    shoot(tab.page, "32-dark-answer")
    tab.page.context.close()
    tab = studio.tab(DESKTOP, color_scheme="dark")
    tab.page.get_by_role("button", name="中文").click()
    expect(tab.page.locator("html")).to_have_attribute("lang", "zh-hans")
    tab.wait_for_page()
    shoot(tab.page, "33-dark-chinese")
    tab.page.context.close()


def other_pages(studio: Studio) -> None:
    tab = studio.tab(DESKTOP, is_signed_in=False)
    tab.page.goto(f"{tab.url}/signin")
    shoot(tab.page, "01-sign-in")
    tab.page.goto(f"{tab.url}/signup")
    tab.page.get_by_label("Username").fill("ada")
    tab.page.get_by_label("Password", exact=True).fill("12345")
    tab.page.get_by_label("Password confirmation").fill("12345")
    tab.page.get_by_role("button", name="Make an account").click()
    shoot(tab.page, "40-sign-up-refused")
    tab.page.goto(f"{tab.url}/no/such/page")
    shoot(tab.page, "41-not-found")
    tab.page.context.close()


def give_scripts(route: WebSocketRoute) -> None:
    """Swaps a known question for the script of its answer on the way out, and back in titles on the way in."""
    server = route.connect_to_server()
    asked: list[str] = []
    titles: dict[str, str] = {}

    def outward(message: str | bytes) -> None:
        frame = json.loads(message)
        question = frame.get("text")
        if question in ANSWERS:
            asked.append(question)
            frame["text"] = script_text(**ANSWERS[question])
        server.send(json.dumps(frame))

    def inward(message: str | bytes) -> None:
        frame = json.loads(message)
        if frame.get("title", "").startswith(PREFIX):
            frame["title"] = titles.setdefault(frame["conversation"], asked[-1])
        route.send(json.dumps(frame))

    route.on_message(outward)
    server.on_message(inward)


def shoot(page: Page, name: str) -> None:
    page.mouse.move(0, 0)
    page.screenshot(path=FOLDER / f"{name}.png", animations="disabled")


@contextmanager
def servers() -> Iterator[None]:
    if os.environ.get("DATABASE_URL"):
        yield
        return
    with tempfile.TemporaryDirectory(prefix="rill-shots-") as folder:
        started = Servers(Path(folder))
        os.environ.update(started.addresses())
        os.environ.setdefault("SECRET_KEY", "only-for-pictures-" + "x" * 50)
        try:
            yield
        finally:
            started.stop()


if __name__ == "__main__":
    sys.exit(main())
