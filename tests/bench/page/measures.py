"""Measurements of one tab: how long until a chat is shown, until a key is painted, and what came over the wire.

Knows the page's marks; numbers are in milliseconds and bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Page, WebSocket

# Runs before the page's own scripts. A paint is over when a task runs after the next frame.
WATCH = """
window.seen = { openedMs: null, keys: [], tasks: [] };
const afterPaint = (done) => requestAnimationFrame(() => {
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = () => done(performance.now());
  port2.postMessage(null);
});
new MutationObserver((_, observer) => {
  if (!document.querySelector("#transcript article")) return;
  observer.disconnect();
  afterPaint((now) => (window.seen.openedMs = now));
}).observe(document, { childList: true, subtree: true });
addEventListener("keydown", ({ timeStamp }) => afterPaint((now) => window.seen.keys.push(now - timeStamp)), true);
new PerformanceObserver((list) => window.seen.tasks.push(...list.getEntries().map(({ duration }) => duration)))
  .observe({ type: "longtask" });
"""
# Counts what changes in the transcript, and how much of it outside of the last answer.
COUNT_CHANGES = """() => {
  window.changes = { all: 0, elsewhere: 0 };
  window.counting = new MutationObserver((records) => {
    const last = [...document.querySelectorAll("article.answer")].at(-1);
    for (const { type, target } of records) {
      window.changes.all += 1;
      if (type !== "attributes" && !last.contains(target) && target.id !== "transcript") window.changes.elsewhere += 1;
    }
  });
  const kinds = { childList: true, subtree: true, characterData: true, attributes: true };
  window.counting.observe(document.querySelector("#transcript"), kinds);
}"""
AT_END = """() => {
  const { scrollHeight, scrollTop, clientHeight } = document.querySelector("#scroller");
  return scrollHeight - scrollTop - clientHeight < 30;
}"""


@dataclass
class Wire:
    """What the tab's socket brought."""

    num_frames: int = 0
    num_bytes: int = 0

    def watch(self, page: Page) -> None:
        page.on("websocket", self._follow)

    def _follow(self, socket: WebSocket) -> None:
        socket.on("framereceived", self._count)

    def _count(self, payload: bytes | str) -> None:
        self.num_frames += 1
        self.num_bytes += len(payload.encode() if isinstance(payload, str) else payload)

    def since(self, before: tuple[int, int]) -> tuple[int, int]:
        return self.num_frames - before[0], self.num_bytes - before[1]

    @property
    def now(self) -> tuple[int, int]:
        return self.num_frames, self.num_bytes


@dataclass(frozen=True, slots=True)
class Typed:
    """Keys pressed while an answer came: from each key to its paint, and tasks over 50 ms meanwhile."""

    keys_ms: list[float] = field(default_factory=list)
    tasks_ms: list[float] = field(default_factory=list)


def opened_ms(page: Page, url: str) -> float:
    """From the start of the navigation until the end of the chat at `url` is painted."""
    page.goto(url)
    page.wait_for_function(f"() => window.seen.openedMs !== null && ({AT_END})()")
    return float(page.evaluate("window.seen.openedMs"))


def load_all(page: Page) -> None:
    """Scrolls up until there is nothing above."""
    earlier = page.locator("#transcript .earlier")
    for _ in range(200):
        page.evaluate("document.querySelector('#scroller').scrollTop = 0")
        page.wait_for_timeout(50)
        if earlier.count() == 0:
            return
    raise TimeoutError("the beginning of the chat never came")


def typed(page: Page, num_keys: int) -> Typed:
    """Types so many letters into the field, one after the other."""
    page.focus("#message")
    page.evaluate("Object.assign(window.seen, { keys: [], tasks: [] })")
    for number in range(num_keys):
        page.keyboard.press("abcdefgh "[number % 9])
        page.wait_for_timeout(30)
    page.wait_for_function(f"() => window.seen.keys.length >= {num_keys}")
    seen: dict[str, Any] = page.evaluate("window.seen")
    return Typed(seen["keys"], seen["tasks"])
