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
from pathlib import Path

from playwright.sync_api import Browser, Page, WebSocketRoute, expect

from inference.testing.script import PREFIX, script_text
from tests.e2e.tab import Tab, launched_browser
from tests.livesite import LiveSite, live_site
from tests.plugins.browser import chromium
from tests.plugins.servers import Servers
from tests.shots_texts import ANSWERS

FOLDER = Path("shots")
DESKTOP = {"width": 1280, "height": 832}
PHONE = {"width": 390, "height": 844}


def main() -> int:
    if chromium() is None:
        print("shots: Chromium is missing", file=sys.stderr)
        return 1
    FOLDER.mkdir(exist_ok=True)
    # Two answers at once: further questions wait in the queue.
    with servers(), live_site("shots", ENGINE_MAX_BATCH="2") as site, launched_browser() as browser:
        desktop(site, browser)
        phone(site, browser)
        dark(site, browser)
        other_pages(site, browser)
    print(f"shots: {len(list(FOLDER.glob('*.png')))} pictures in {FOLDER}/")
    return 0


def desktop(site: LiveSite, browser: Browser) -> None:
    tab = new_tab(site, browser, DESKTOP)
    page = tab.page
    page.goto(site.url)
    shoot(page, "01-sign-in")
    page.get_by_role("button", name="Go on as a guest").click()
    tab.wait_for_page()
    shoot(page, "02-empty")
    tab.ask("Why is the sky blue?")
    tab.wait_for_text("Air scatters")
    shoot(page, "03-streaming")
    tab.wait_for_end()
    tab.ask("And why are sunsets red?")
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
    waiting(site, browser)


def waiting(site: LiveSite, browser: Browser) -> None:
    """Reading and queued: others keep the engine busy."""
    tabs = []
    for _ in range(4):
        tab = new_tab(site, browser, DESKTOP)
        tab.enter_as_guest()
        tab.ask("Think for a long time.")
        expect(tab.answer.locator(".waiting")).to_be_visible()
        tabs.append(tab)
    expect(tabs[3].answer.locator(".waiting")).to_contain_text("In the queue")
    shoot(tabs[0].page, "12-waiting")
    shoot(tabs[3].page, "13-queued")
    for tab in tabs:
        tab.page.context.close()


def phone(site: LiveSite, browser: Browser) -> None:
    tab = new_tab(site, browser, PHONE, is_mobile=True)
    tab.enter_as_guest()
    shoot(tab.page, "20-phone-empty")
    for question in ("Why is the sky blue?", "How does a binary search work?"):
        tab.page.fill("#message", question)
        tab.page.get_by_role("button", name="Send").click()
        expect(tab.page.locator("article.answer")).not_to_have_count(0)
        tab.wait_for_end()
    shoot(tab.page, "21-phone-answer")
    tab.page.get_by_role("button", name="Chats").click()
    tab.page.wait_for_timeout(300)
    shoot(tab.page, "22-phone-drawer")
    tab.page.context.close()


def dark(site: LiveSite, browser: Browser) -> None:
    tab = new_tab(site, browser, DESKTOP, color_scheme="dark")
    tab.page.goto(site.url)
    shoot(tab.page, "30-dark-sign-in")
    tab.enter_as_guest()
    shoot(tab.page, "31-dark-empty")
    tab.ask("Why is the sky blue?")
    tab.wait_for_end()
    tab.answer.locator(".truth").click()
    tab.ask("How does a binary search work?")
    expect(tab.page.locator("article.answer")).to_have_count(2)
    tab.wait_for_end()
    shoot(tab.page, "32-dark-answer")
    tab.page.get_by_role("button", name="中文").click()
    tab.wait_for_page()
    tab.new_chat("新对话")
    shoot(tab.page, "33-dark-chinese")
    tab.page.context.close()


def other_pages(site: LiveSite, browser: Browser) -> None:
    tab = new_tab(site, browser, DESKTOP)
    tab.page.goto(f"{site.url}/signup")
    tab.page.get_by_label("Username").fill("ada")
    tab.page.get_by_label("Password", exact=True).fill("12345")
    tab.page.get_by_label("Password confirmation").fill("12345")
    tab.page.get_by_role("button", name="Make an account").click()
    shoot(tab.page, "40-sign-up-refused")
    tab.page.goto(f"{site.url}/no/such/page")
    shoot(tab.page, "41-not-found")
    tab.page.context.close()


def new_tab(site: LiveSite, browser: Browser, size: dict[str, int], **options: object) -> Tab:
    context = browser.new_context(viewport=size, locale="en-GB", **options)  # type: ignore[arg-type]
    page = context.new_page()
    page.route_web_socket("**/ws/chat", give_scripts)
    return Tab(page, site.url)


def give_scripts(route: WebSocketRoute) -> None:
    """Swaps a known question for the script of its answer on the way out, and back in titles on the way in."""
    server = route.connect_to_server()
    asked: list[str] = []

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
            frame["title"] = asked[-1]
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
