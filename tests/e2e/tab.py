"""One tab of the chat in the words of a person: enter, ask, wait, stop. Records what must never happen.

Knows the page's marks (ids, roles, states), not the server's insides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, ConsoleMessage, Dialog, Locator, Page, expect, sync_playwright

from inference.testing.script import script_text
from tests.patience import PATIENCE_S
from tests.plugins.browser import chromium

ARGUMENTS = (
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--headless",
    # Without one, drawing by a software GPU costs more than drawing.
    "--disable-gpu",
)
# Runs before the page's own scripts, in every document.
WATCH = """
window.violations = [];
addEventListener("securitypolicyviolation", ({ violatedDirective, blockedURI, sample }) =>
  violations.push(`${violatedDirective} ${blockedURI} ${sample}`));
"""
# A cut line makes these; they are the browser's, not the page's.
NETWORK_NOISE = ("ERR_INTERNET_DISCONNECTED", "WebSocket connection to")


# A busy machine is slow, not wrong.
expect.set_options(timeout=PATIENCE_S * 1000)


@contextmanager
def launched_browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=list(ARGUMENTS))
        yield browser
        browser.close()


def until(condition: Callable[[], bool], page: Page) -> None:
    """Returns when `condition` holds. Raises TimeoutError."""
    for _ in range(int(PATIENCE_S * 10)):
        if condition():
            return
        page.wait_for_timeout(100)
    raise TimeoutError("the condition never came true")


class Tab:
    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.url = url
        self._faults: list[str] = []
        host = urlsplit(url).netloc
        page.add_init_script(WATCH)
        page.on("dialog", self._note_dialog)
        page.on("pageerror", lambda error: self._faults.append(f"exception: {error}"))
        page.on("console", self._note_console)
        page.on("request", lambda request: self._check_host(request.url, host))

    def _note_dialog(self, dialog: Dialog) -> None:
        self._faults.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _note_console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self._faults.append(message.text)

    def _check_host(self, url: str, host: str) -> None:
        parts = urlsplit(url)
        if parts.netloc != host and parts.scheme not in ("data", "blob"):
            self._faults.append(f"foreign request: {url}")

    def faults(self, *, is_cut: bool = False) -> list[str]:
        """Everything that must not happen: errors, dialogs, violations of the policy, requests to others."""
        found = self._faults + list(self.page.evaluate("window.violations"))
        noise = NETWORK_NOISE if is_cut else ()
        return [fault for fault in found if not any(part in fault for part in noise)]

    def forget_cut(self) -> None:
        """The test cut the line on purpose: what the browser said about it is no fault."""
        self._faults = self.faults(is_cut=True)

    def forget_faults(self) -> None:
        """The test broke the page on purpose."""
        self._faults = []

    def open(self, path: str = "/") -> None:
        self.page.goto(f"{self.url}{path}")
        self.wait_for_page()

    def enter_as_guest(self) -> None:
        self.page.goto(f"{self.url}/")
        self.page.get_by_role("button", name="Go on as a guest").click()
        self.wait_for_page()

    def new_chat(self) -> None:
        self.page.get_by_role("link", name="New chat").first.click()
        expect(self.page.locator(".empty")).to_be_visible()

    def wait_for_page(self) -> None:
        """Until the page's scripts run."""
        expect(self.page.locator("#transcript > *")).not_to_have_count(0)

    def ask(self, text: str) -> None:
        self.wait_for_page()
        self.page.fill("#message", text)
        self.page.press("#message", "Enter")

    def ask_script(self, **options: Any) -> None:
        """Asks the scripted engine for an answer of these options."""
        self.ask(script_text(**options))

    @property
    def answer(self) -> Locator:
        return self.page.locator("article.answer").last

    @property
    def answer_text(self) -> str:
        return self.answer.locator(".text").text_content() or ""

    def wait_for_text(self, part: str) -> None:
        expect(self.answer.locator(".text")).to_contain_text(part)

    def wait_for_end(self) -> None:
        """Until the last answer is in a final state."""
        expect(self.page.locator("article.answer.live")).to_have_count(0)
        expect(self.answer.locator(".actions")).to_be_attached()

    @property
    def status(self) -> Locator:
        """The line that says what happens with the answer."""
        return self.page.locator("#status[role=status]")

    @property
    def stop_button(self) -> Locator:
        return self.page.get_by_role("button", name="Stop", exact=True)

    def conversation(self) -> str:
        """The id of the shown conversation, once it is stored."""
        self.page.wait_for_url("**/c/*")
        return self.page.url.rsplit("/", 1)[1]

    def stored(self) -> dict[str, Any]:
        """The conversation as the server has it, with the last messages of all its branches."""
        url = f"{self.url}/api/conversations/{self.conversation()}"
        messages = self.page.request.get(f"{url}/messages?branch=all&limit=200").json()["items"]
        return dict(self.page.request.get(url).json()) | {"messages": messages}

    def stored_branch(self) -> list[dict[str, Any]]:
        """The messages of the branch that the server holds for the shown one."""
        url = f"{self.url}/api/conversations/{self.conversation()}/messages?limit=200"
        return list(self.page.request.get(url).json()["items"])

    def stored_answer(self) -> dict[str, Any]:
        """The last stored answer."""
        answers: list[dict[str, Any]] = [m for m in self.stored()["messages"] if m["role"] == "assistant"]
        return answers[-1]
