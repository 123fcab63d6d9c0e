"""`python -m tests.bench.page [--quick]`: a long chat in a real browser, opened, read to its beginning, and typed in
while an answer comes. Writes the table of docs/page-benchmarks.md.

Knows the order of things and the site that is measured.
"""

from __future__ import annotations

import argparse
import os
import secrets
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from inference.testing.script import script_text
from tests.bench import host
from tests.bench.page import report
from tests.bench.page.chat import long_chat, put_in
from tests.bench.page.measures import WATCH, Wire, load_all, opened_ms, typed
from tests.bench.page.report import Figure
from tests.e2e.people import let_in, signed_in
from tests.e2e.tab import Tab, launched_browser
from tests.livesite import LiveSite, live_site
from tests.plugins.servers import Servers

PAGE = Path(__file__).resolve().parents[3] / "docs" / "page-benchmarks.md"
OPEN_AIM_MS = 1000.0
KEY_AIM_MS = 100.0
# Bytes of frames for each byte of an answer: an answer of twice the length may not cost more than twice the bytes.
GROWTH_AIM = 1.2
TOKENS_PER_S = 30
NUM_OPENED = 5
# The server reads the long chat before it answers; that is not what is measured here.
PATIENCE_MS = 60_000


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    expect.set_options(timeout=PATIENCE_MS)
    machine = f"{host.processor()}, commit {host.commit()}, load before {os.getloadavg()[0]:.1f}"
    print(machine + ("\n" if host.is_quiet() else "\nWARNING: this machine is not quiet\n"), flush=True)
    with _site() as site, launched_browser() as browser:
        figures = _measure(site, browser, options)
    for figure in figures:
        print(report.line(figure), flush=True)
    if not options.quick:
        report.write(figures, machine, options.page)
    return 0


def _measure(site: LiveSite, browser: Browser, options: argparse.Namespace) -> list[Figure]:
    context = browser.new_context(viewport={"width": 1200, "height": 800}, locale="en-GB")
    (session,) = signed_in(site, 1)
    let_in(context, site, session)
    page, wire = context.new_page(), Wire()
    page.add_init_script(WATCH)
    wire.watch(page)
    tab = Tab(page, site.url)
    tab.open()
    url = f"{site.url}/c/{put_in(page, site.url, long_chat(options.messages))}"
    figures = [_opening(page, url, options.messages), *_typing(tab, options, "its end is loaded")]
    load_all(page)
    figures += _typing(tab, options, "all of it is loaded")
    figures += _wire(tab, wire, options.tokens)
    context.close()
    return figures


def _opening(page: Page, url: str, num_messages: int) -> Figure:
    times = sorted(opened_ms(page, url) for _ in range(NUM_OPENED))
    return Figure(
        f"a chat of {num_messages} messages is opened, median", times[len(times) // 2], "ms", OPEN_AIM_MS
    )


def _typing(tab: Tab, options: argparse.Namespace, when: str) -> list[Figure]:
    """Keys beside an answer that comes for as long as they are pressed."""
    num = tab.page.locator("article.answer").count()
    tab.ask(script_text(tokens=4000, delay_ms=1000 / TOKENS_PER_S))
    expect(tab.page.locator("article.answer")).to_have_count(num + 1)
    tab.wait_for_text("ipsum")
    measured = typed(tab.page, options.keys)
    tab.stop_button.click()
    tab.wait_for_end()
    tab.page.fill("#message", "")
    keys = sorted(measured.keys_ms)
    return [
        Figure(f"key to paint, median, {when}", keys[len(keys) // 2], "ms", KEY_AIM_MS),
        Figure(f"key to paint, the slowest of {len(keys)}, {when}", keys[-1], "ms", KEY_AIM_MS),
        Figure(f"tasks over 50 ms meanwhile, {when}", len(measured.tasks_ms), "tasks"),
    ]


def _wire(tab: Tab, wire: Wire, num_tokens: int) -> list[Figure]:
    """Bytes of frames for each byte of answers of three lengths."""
    tab.new_chat()
    shares = []
    figures = []
    for times in (1, 2, 4):
        num, before = tab.page.locator("article.answer").count(), wire.now
        tab.ask(script_text(tokens=num_tokens * times, delay_ms=1))
        expect(tab.page.locator("article.answer")).to_have_count(num + 1)
        tab.wait_for_end()
        length = len(tab.stored_answer()["text"].encode())
        shares.append(wire.since(before)[1] / length)
        figures.append(Figure(f"bytes on the wire for each of {length:,} bytes", shares[-1], "bytes"))
    return [
        *figures,
        Figure(
            "four times the answer, share of the shortest one's bytes", shares[-1] / shares[0], "", GROWTH_AIM
        ),
    ]


@contextmanager
def _site() -> Iterator[LiveSite]:
    with tempfile.TemporaryDirectory(prefix="rill-bench-") as folder:
        servers = Servers(Path(folder))
        try:
            os.environ.update(servers.addresses())
            with live_site(
                "page_bench", SECRET_KEY=secrets.token_urlsafe(48), CHAT_LOG_LEVEL="WARNING"
            ) as site:
                yield site
        finally:
            servers.stop()


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.page", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small numbers, and nothing is written")
    parser.add_argument("--messages", type=int, default=None, help="of the chat (500)")
    parser.add_argument("--keys", type=int, default=None, help="that are pressed (120)")
    parser.add_argument("--tokens", type=int, default=None, help="of the shortest answer (300)")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page that gets the table")
    options = parser.parse_args(arguments)
    options.messages = options.messages or (60 if options.quick else 500)
    options.keys = options.keys or (10 if options.quick else 120)
    options.tokens = options.tokens or (40 if options.quick else 300)
    return options


if __name__ == "__main__":
    sys.exit(main())
