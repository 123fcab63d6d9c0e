"""The page of API keys, by mouse, by keyboard, for ears and on a phone: made and shown once, replaced, revoked."""

from __future__ import annotations

import re
from typing import Literal

import httpx2
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.tab import Tab
from tests.e2e.test_accessible import SIDEWAYS, faults
from tests.livesite import LiveSite

pytestmark = pytest.mark.browser


@pytest.fixture
def keys(tab: Tab) -> Page:
    """The page of somebody who has no key."""
    tab.page.goto(f"{tab.url}/keys")
    expect(tab.page.get_by_text("You have no key yet.")).to_be_visible()
    return tab.page


def make(page: Page, name: str) -> str:
    """A new key, shown."""
    page.get_by_role("button", name="New key").click()
    page.get_by_label("Name").fill(name)
    page.get_by_role("button", name="Make the key").click()
    return shown(page)


def shown(page: Page) -> str:
    secret = page.get_by_label("The new key").get_by_role("textbox")
    expect(secret).to_have_value(re.compile("^rill_"))
    return secret.input_value()


def row(page: Page, name: str) -> Locator:
    return page.get_by_role("listitem").filter(has=page.get_by_role("heading", name=name))


def works(site: LiveSite, key: str) -> bool:
    return httpx2.get(f"{site.url}/v1/models", headers={"Authorization": f"Bearer {key}"}).status_code == 200


def test_a_key_is_made_by_keyboard_shown_once_and_opens_what_was_chosen(keys: Page, site: LiveSite) -> None:
    keys.context.grant_permissions(["clipboard-read", "clipboard-write"])
    keys.get_by_role("button", name="New key").focus()
    keys.keyboard.press("Enter")
    expect(keys.get_by_label("Name")).to_be_focused()
    keys.keyboard.press("Enter")
    expect(keys.get_by_text("Please give it a name.")).to_be_visible()
    keys.keyboard.type("reports <b>")
    for _ in range(3):
        keys.keyboard.press("Tab")
    expect(keys.get_by_label("Read your usage")).to_be_focused()
    keys.keyboard.press("Space")
    keys.keyboard.press("Enter")
    secret = shown(keys)
    copy = keys.get_by_role("button", name="Copy the key")
    expect(copy).to_be_focused()
    keys.keyboard.press("Enter")
    expect(keys.get_by_role("status")).to_have_text("Copied.")
    assert keys.evaluate("navigator.clipboard.readText()") == secret
    expect(row(keys, "reports <b>")).to_contain_text("Chat, Embeddings, Read your usage")
    expect(row(keys, "reports <b>")).to_contain_text(re.compile(r"Last used\s*Never"))
    assert works(site, secret)
    keys.reload()
    expect(row(keys, "reports <b>")).not_to_contain_text(re.compile(r"Last used\s*Never"))
    assert secret not in keys.content()
    (kept,) = keys.request.get(f"{site.url}/api/keys").json()
    assert kept["scopes"] == ["chat", "embeddings", "usage"] and kept["expires_at"] is not None


def test_a_key_without_a_scope_is_not_made(keys: Page, site: LiveSite) -> None:
    keys.get_by_role("button", name="New key").click()
    keys.get_by_label("Name").fill("none")
    for scope in ("Chat", "Embeddings"):
        keys.get_by_label(scope).uncheck()
    keys.get_by_role("button", name="Make the key").click()
    expect(keys.get_by_text("Please choose at least one.")).to_be_visible()
    keys.get_by_role("button", name="Cancel").click()
    expect(keys.get_by_role("button", name="New key")).to_be_focused()
    assert keys.request.get(f"{site.url}/api/keys").json() == []


def test_a_key_is_replaced_while_the_old_one_goes_on(keys: Page, site: LiveSite) -> None:
    old = make(keys, "shop")
    keys.get_by_role("button", name="Done").click()
    row(keys, "shop").get_by_role("button", name="Replace").click()
    grace = keys.get_by_label("The old key goes on")
    expect(grace).to_be_focused()
    grace.select_option("For one hour")
    keys.get_by_role("button", name="Make the key").click()
    new = shown(keys)
    assert new != old and works(site, old) and works(site, new)
    expect(row(keys, "shop")).to_have_count(2)
    before = row(keys, "shop").filter(has_text="replaced")
    expect(before.get_by_role("button", name="Replace")).to_have_count(0)
    expect(before.get_by_role("button", name="Revoke")).to_be_visible()


def test_a_key_is_revoked_when_that_was_meant(keys: Page, site: LiveSite) -> None:
    secret = make(keys, "lost")
    row(keys, "lost").get_by_role("button", name="Revoke").click()
    question = keys.get_by_role("dialog", name="Revoke “lost”?")
    question.get_by_role("button", name="Keep").click()
    assert works(site, secret)
    row(keys, "lost").get_by_role("button", name="Revoke").click()
    question.get_by_role("button", name="Revoke").click()
    expect(keys.get_by_role("status")).to_have_text("“lost” is revoked.")
    expect(keys.get_by_role("heading", name="Your keys")).to_be_focused()
    assert not works(site, secret)
    keys.get_by_text("Ended keys (1)").click()
    expect(row(keys, "lost")).to_contain_text("revoked")
    expect(row(keys, "lost").get_by_role("button")).to_have_count(0)


def test_what_the_server_refuses_is_said(keys: Page, tab: Tab) -> None:
    keys.route(
        "**/api/keys", lambda route: route.fulfill(status=409, json={"error": {"code": "too_many_keys"}})
    )
    keys.get_by_role("button", name="New key").click()
    keys.get_by_label("Name").fill("one too many")
    keys.get_by_role("button", name="Make the key").click()
    expect(keys.get_by_role("alert").filter(has_text="too many keys")).to_be_visible()
    expect(keys.get_by_label("Name")).to_have_value("one too many")
    expect(keys.get_by_role("button", name="Make the key")).to_be_enabled()
    tab.forget_faults()  # the browser's own line about the refusal


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_state_passes_axe_and_nothing_scrolls_sideways(
    keys: Page, scheme: Literal["light", "dark"]
) -> None:
    keys.emulate_media(color_scheme=scheme)
    assert faults(keys) == []
    make(keys, "w" * 100)
    assert faults(keys) == []
    for width in (320, 390, 760, 1280):
        keys.set_viewport_size({"width": width, "height": 800})
        assert not keys.evaluate(SIDEWAYS), width
    row(keys, "www").get_by_role("button", name="Replace").click()
    assert faults(keys) == []
    row(keys, "www").get_by_role("button", name="Revoke").click()
    assert faults(keys) == []


def test_the_page_is_found_from_the_settings(tab: Tab) -> None:
    tab.page.get_by_role("button", name="Settings").click()
    tab.page.get_by_role("link", name="API keys").click()
    expect(tab.page.get_by_role("heading", name="API keys")).to_be_visible()
