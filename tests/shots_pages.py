"""Pictures of the pages beside the chat: doors, a shared snapshot, keys, usage, and what staff look at."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.e2e.tab import Tab
from tests.shots_studio import DESKTOP, PHONE, Studio, shoot

NUM_DAYS = 30
# A month as a small office has it, so that chart and tables are full.
USAGE = """
INSERT INTO accounts_usagerecord
       (generation, user_id, tenant_id, model, kind, origin, state, prompt_tokens, reused_tokens, prefilled_tokens,
        generated_tokens, peak_kv_bytes, block_seconds, device_seconds, queue_ms, prefill_ms, decode_ms, delivery_ms,
        cost, currency, saved_tokens, saved_ms, saved_cost, created_at)
SELECT gen_random_uuid(), u.id, u.tenant_id, m.name, 'answer', o.name, 'complete', 900 + n * 37, 400 + n * 11,
       500 + n * 26, 300 + (n * 131) %% 700, 0, 0, 1.5 + n %% 7, 0, 0, 0, 0, 0.0012 * n, 'EUR',
       CASE o.name WHEN 'model' THEN 0 ELSE 420 END, 0, CASE o.name WHEN 'model' THEN 0 ELSE 0.0008 END,
       now() - n * interval '1 day'
  FROM generate_series(0, %s) n, accounts_user u, (VALUES ('Qwen3-0.6B'), ('SmolLM2-135M-Instruct')) m(name),
       (VALUES ('model'), ('exact')) o(name) WHERE u.username IN ('Ada', 'Ada-1', %s)"""


def beside(studio: Studio) -> None:
    doors(studio)
    shared(studio)
    keys(studio)
    staff(studio)


def doors(studio: Studio) -> None:
    """What whoever is not signed in meets."""
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


def shared(studio: Studio) -> None:
    tab = studio.tab(DESKTOP)
    tab.ask("How does a binary search work?")
    tab.wait_for_end()
    page = tab.page
    # The server draws this page: what it has must be the question, and not its script.
    question = "How does a binary search work?"
    studio.site.sql("UPDATE chat_message SET text = %s WHERE role = 'user'", question)
    studio.site.sql("UPDATE chat_conversation SET title = %s", question)
    page.get_by_role("button", name="More about this chat").click()
    page.get_by_role("menuitem", name="Share").click()
    page.get_by_role("button", name="Make a link").click()
    address = page.get_by_label("Address of the link")
    expect(address).to_be_visible()
    shoot(page, "54-share")
    link = address.input_value()
    page.goto(link)
    expect(page.locator("article.answer table")).to_be_visible()
    shoot(page, "60-shared")
    page.set_viewport_size(PHONE)
    shoot(page, "61-shared-phone")
    page.context.close()


def keys(studio: Studio) -> None:
    tab = studio.tab(DESKTOP)
    page = tab.page
    page.goto(f"{tab.url}/keys")
    expect(page.get_by_text("You have no key yet.")).to_be_visible()
    shoot(page, "62-no-keys")
    for name in ("Nightly reports", "Shop assistant"):
        page.get_by_role("button", name="New key").click()
        page.get_by_label("Name").fill(name)
        page.get_by_role("button", name="Make the key").click()
        expect(page.get_by_role("heading", name=name)).to_be_visible()
        if name == "Shop assistant":
            shoot(page, "63-key-shown-once")
        page.get_by_role("button", name="Done").click()
    page.get_by_role("button", name="Replace").first.click()
    shoot(page, "64-replace-a-key")
    page.set_viewport_size(PHONE)
    shoot(page, "65-keys-phone")
    page.context.close()


def staff(studio: Studio) -> None:
    tab = studio.tab(DESKTOP)
    page = tab.page
    me = page.evaluate("JSON.parse(document.getElementById('boot').textContent).user.name")
    studio.site.sql("UPDATE accounts_user SET is_staff = true, is_superuser = true WHERE username = %s", me)
    page.goto(f"{tab.url}/usage")
    shoot(page, "70-usage-empty")
    studio.site.sql(USAGE, NUM_DAYS, me)
    for path, name in (("usage", "71-usage"), ("usage/all", "72-usage-all")):
        page.goto(f"{tab.url}/{path}")
        shoot(page, name, whole=True)
    page.set_viewport_size(PHONE)
    shoot(page, "73-usage-phone")
    page.set_viewport_size(DESKTOP)
    admin(page, tab)
    page.context.close()


def admin(page: Page, tab: Tab) -> None:
    page.goto(f"{tab.url}/admin/selftest/")
    expect(page.locator("#events")).to_contain_text("Event streams")
    shoot(page, "80-self-test")
    page.goto(f"{tab.url}/admin/chat/sharelink/")
    shoot(page, "81-shared-links")
    page.goto(f"{tab.url}/admin/")
    shoot(page, "82-admin")
