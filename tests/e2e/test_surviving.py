"""An answer outlives reloads, tabs and processes: in the end the page shows what is stored, once and in order."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import httpx2
import pytest
from playwright.sync_api import BrowserContext, expect

from tests.e2e.people import let_in, signed_in
from tests.e2e.tab import Tab, until
from tests.e2e.test_chat import core_of
from tests.livesite import PROJECT, LiveSite, live_site

pytestmark = pytest.mark.browser

WORDS = " ".join(f"word{i}" for i in range(60))


def test_reloads_at_any_token_lose_and_repeat_nothing(tab: Tab) -> None:
    tab.ask_script(text=WORDS, delay_ms=120)
    for number in (1, 9, 22, 37):
        tab.wait_for_text(f"word{number} ")
        tab.page.reload()
    tab.wait_for_text("word59")
    tab.wait_for_end()
    assert tab.answer_text == tab.stored_answer()["text"] == WORDS


def test_a_tab_that_comes_in_the_middle_shows_all_and_its_stop_frees_the_engine(
    tab: Tab, person: BrowserContext, site: LiveSite
) -> None:
    tab.ask_script(text=WORDS, delay_ms=150)
    tab.wait_for_text("word8 ")
    second = Tab(person.new_page(), site.url)
    second.open(f"/c/{tab.conversation()}")
    second.wait_for_text("word0 word1 word2")
    num_before = numbers(site)["rill_cancelled_total"]
    second.stop_button.click()
    for each in (tab, second):
        each.wait_for_end()
        expect(each.answer).to_contain_text("Stopped")
    stored = tab.stored_answer()
    assert stored["state"] == "stopped"
    assert tab.answer_text == second.answer_text == stored["text"].rstrip()
    until(lambda: numbers(site)["rill_running_batch"] == 0, tab.page)
    assert numbers(site)["rill_cancelled_total"] == num_before + 1
    assert second.faults() == []


def numbers(site: LiveSite) -> dict[str, float]:
    """The site's metrics without labels."""
    lines = httpx2.get(f"{site.url}/metrics").text.splitlines()
    pairs = [line.split() for line in lines if not line.startswith("#") and "{" not in line]
    return {name: float(value) for name, value in pairs}


@dataclass(slots=True)
class Killable:
    """A site whose web process may be killed and started again at the same address."""

    site: LiveSite
    sessions: Iterator[str]
    web: subprocess.Popen[bytes] | None = None

    def kill_web(self) -> None:
        web = self.web or self.site.web
        web.kill()
        web.wait()

    def start_web(self) -> None:
        with (self.site.folder / "web.log").open("ab") as log:
            argv = [sys.executable, "manage.py", "serve"]
            self.web = subprocess.Popen(argv, env=self.site.environ, cwd=PROJECT, stdout=log, stderr=log)

    def stop(self) -> None:
        if self.web is not None:
            self.web.terminate()
            self.web.wait()


@pytest.fixture(scope="module")
def killable() -> Iterator[Killable]:
    with live_site("killed", CHAT_LEASE_S="1.5", CHAT_CHECKPOINT_S="0.2", SEMCACHE_BUDGET_MS="5000") as site:
        killable = Killable(site, iter(signed_in(site, 3)))
        yield killable
        killable.stop()


@pytest.fixture
def doomed(killable: Killable, context: BrowserContext) -> Tab:
    """A tab of the site that may be killed."""
    let_in(context, killable.site, next(killable.sessions))
    tab = Tab(context.new_page(), killable.site.url)
    tab.open()
    return tab


def test_a_web_process_that_dies_and_comes_back_loses_nothing(killable: Killable, doomed: Tab) -> None:
    doomed.ask_script(text=WORDS, delay_ms=150)
    doomed.wait_for_text("word3 ")
    killable.kill_web()
    doomed.page.fill("#message", "a thought for later")
    killable.start_web()
    doomed.wait_for_text("word59")
    doomed.wait_for_end()
    assert doomed.answer_text == doomed.stored_answer()["text"] == WORDS
    assert doomed.page.input_value("#message") == "a thought for later"


def test_an_engine_that_dies_is_told_at_once_with_a_way_on(killable: Killable, doomed: Tab) -> None:
    doomed.ask_script(text=WORDS, delay_ms=150)
    doomed.wait_for_text("word3 ")
    os.kill(core_of(killable.site), signal.SIGKILL)
    expect(doomed.answer.get_by_role("button", name="Try again")).to_be_visible()
    assert doomed.stored_answer()["state"] in ("failed", "interrupted")


def test_without_an_engine_history_opens_and_stored_answers_come(context: BrowserContext) -> None:
    question = "Which plants grow in the shade of a wall?"
    with live_site("engineless", SEMCACHE_BUDGET_MS="5000") as site:
        let_in(context, site, signed_in(site, 1)[0])
        tab = Tab(context.new_page(), site.url)
        tab.open()
        tab.ask(question)
        tab.wait_for_end()
        until(lambda: site.sql("SELECT count(*) FROM semcache_cacheentry") != [(0,)], tab.page)
        site.engine.kill()
        site.engine.wait()
        tab.page.reload()
        tab.wait_for_end()
        assert "You said" in tab.answer_text
        tab.new_chat()
        tab.ask(question)
        tab.wait_for_end()
        expect(tab.answer.locator(".truth")).to_contain_text("from cache, same question")
        tab.new_chat()
        tab.ask("And which in the sun?")
        expect(tab.page.locator("#transcript")).to_contain_text("The model could not be reached")
        tab.page.close()
