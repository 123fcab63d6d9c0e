"""`python -m tests.shots`: pictures of the page's main states in `shots/`, to be looked at by a person.

Runs the real site over the scripted engine. The scripts travel between page and server, so that the pictures show
ordinary questions. Needs Chromium; starts throwaway servers where DATABASE_URL names none.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import expect

from tests.e2e.people import signed_in
from tests.e2e.tab import launched_browser
from tests.livesite import live_site
from tests.plugins.browser import chromium
from tests.plugins.servers import Servers
from tests.shots_pages import beside
from tests.shots_studio import DESKTOP, FOLDER, PHONE, Studio, shoot
from tests.shots_texts import READS_LONG


def main() -> int:
    if chromium() is None:
        print("shots: Chromium is missing", file=sys.stderr)
        return 1
    FOLDER.mkdir(exist_ok=True)
    # Two answers at once, so that further questions wait in the queue, and time to take their pictures.
    settings = {"ENGINE_MAX_BATCH": "2", "ENGINE_STEP_TIMEOUT_S": "600", "SEMCACHE_BUDGET_MS": "5000"}
    with servers(), live_site("shots", **settings) as site, launched_browser() as browser:
        studio = Studio(site, browser, signed_in(site, 16))
        beside(studio)
        desktop(studio)
        sheets(studio)
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
    tab.new_chat()
    tab.ask("How are quadratic equations solved?")
    tab.wait_for_end()
    expect(tab.answer.locator("math")).not_to_have_count(0)
    shoot(page, "14-math")
    page.get_by_role("button", name="More about this chat").click()
    page.get_by_role("menuitem", name="Delete").click()
    shoot(page, "10-delete")
    page.get_by_role("button", name="Keep").click()
    page.get_by_role("button", name="Show or hide the chats").click()
    shoot(page, "11-icon-rail")
    page.context.close()


def sheets(studio: Studio) -> None:
    """What opens beside the text, and what opens at a button."""
    tab = studio.tab(DESKTOP)
    page = tab.page
    tab.ask("Why is the sky blue?")
    tab.wait_for_end()
    page.get_by_role("button", name="Settings").click()
    shoot(page, "50-settings")
    page.get_by_role("button", name="Close").click()
    page.get_by_role("button", name="This chat", exact=True).click()
    shoot(page, "51-this-chat")
    page.get_by_role("button", name="Close").click()
    page.fill("#message", "/")
    page.press("#message", "ArrowDown")
    shoot(page, "52-templates")
    page.fill("#message", "")
    page.locator(".row").first.hover()
    page.get_by_role("button", name="More about “Why").click()
    shoot(page, "53-menu")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Import and export").click()
    page.get_by_role("menuitem", name="Import").click()
    shoot(page, "56-import")
    page.get_by_role("button", name="Close").click()
    page.locator("article.question").hover()
    page.locator("article.question").get_by_role("button", name="Edit").click()
    shoot(page, "55-edit")
    page.context.close()


def waiting(studio: Studio) -> None:
    """Reading and queued: others keep the engine busy."""
    tabs = []
    for question in (READS_LONG, *["Think for a long time."] * 3):
        tab = studio.tab(DESKTOP)
        tab.ask(question)
        expect(tab.answer.locator(".waiting")).to_be_visible()
        tabs.append(tab)
    expect(tabs[3].answer.locator(".waiting")).to_contain_text("In the queue")
    tabs[0].page.get_by_text("Reading 8,192 of 20,480 tokens").wait_for()
    shoot(tabs[0].page, "12-reading")
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
    tab.page.get_by_role("button", name="Settings").click()
    tab.page.get_by_role("radio", name="中文").click(force=True)
    expect(tab.page.locator("html")).to_have_attribute("lang", "zh-hans")
    tab.wait_for_page()
    shoot(tab.page, "33-dark-chinese")
    tab.ask("天空为什么是蓝色的？")
    expect(tab.page.locator("article.answer .actions")).to_be_attached()
    shoot(tab.page, "34-dark-chinese-answer")
    tab.page.context.close()


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
