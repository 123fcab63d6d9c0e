"""The life of an API key, seen through the door it opens."""

from __future__ import annotations

import httpx2
import pytest

from tests.livesite import LiveSite


def status_with(site: LiveSite, key: str, method: str = "GET", path: str = "/v1/models") -> int:
    headers = {"Authorization": f"Bearer {key}"}
    return httpx2.request(
        method, f"{site.url}{path}", headers=headers, json={} if method == "POST" else None
    ).status_code


def test_createkey_prints_a_key_that_works_and_makes_the_user(site: LiveSite) -> None:
    key = site.manage("createkey", "--user", "newcomer").strip()
    assert status_with(site, key) == 200
    ((password, is_staff),) = site.sql(
        "SELECT password, is_staff FROM accounts_user WHERE username = 'newcomer'"
    )
    assert str(password).startswith("!") and is_staff is False


def test_the_database_never_holds_the_key(site: LiveSite) -> None:
    key = site.key("secretive")
    rows = site.sql("SELECT * FROM accounts_apikey")
    assert not [row for row in rows if key in repr(row) or key[-20:] in repr(row)]


@pytest.mark.parametrize(
    ("path", "scopes", "status"),
    [
        ("/v1/chat/completions", "embeddings", 403),
        ("/v1/embeddings", "chat", 403),
        ("/v1/chat/completions", "chat", 400),
        ("/v1/embeddings", "embeddings", 400),
    ],
)
def test_a_key_opens_only_what_its_scopes_name(site: LiveSite, path: str, scopes: str, status: int) -> None:
    assert status_with(site, site.key("scoped", scopes), "POST", path) == status


@pytest.mark.parametrize("end", ["expires_at = now() - interval '1 second'", "revoked_at = now()"])
def test_a_key_ends_at_once(site: LiveSite, end: str) -> None:
    key = site.key("ending")
    assert status_with(site, key) == 200
    site.sql(f"UPDATE accounts_apikey SET {end} WHERE prefix = %s", key[:13])
    assert status_with(site, key) == 401


def test_the_key_of_a_disabled_account_is_refused(site: LiveSite) -> None:
    key = site.key("leaver")
    site.sql("UPDATE accounts_user SET is_active = false WHERE username = 'leaver'")
    assert status_with(site, key) == 401


def test_the_last_use_is_stamped_at_most_once_a_minute(site: LiveSite) -> None:
    def stamp() -> object:
        return site.sql("SELECT last_used_at FROM accounts_apikey WHERE prefix = %s", key[:13])[0][0]

    key = site.key("stamped")
    assert stamp() is None
    status_with(site, key)
    first = stamp()
    assert first is not None
    status_with(site, key)
    assert stamp() == first
    site.sql(
        "UPDATE accounts_apikey SET last_used_at = now() - interval '61 seconds' WHERE prefix = %s", key[:13]
    )
    status_with(site, key)
    assert stamp() > first  # type: ignore[operator]


def test_two_keys_with_one_prefix_do_not_mix(site: LiveSite) -> None:
    first, second = site.key("twin-a"), site.key("twin-b")
    site.sql("UPDATE accounts_apikey SET prefix = %s WHERE prefix = %s", first[:13], second[:13])
    assert status_with(site, first) == 200
    assert status_with(site, first[:13] + second[13:]) == 401


def test_a_caller_at_the_cap_gets_429_with_a_time(site: LiveSite, model: str) -> None:
    key = site.key("busy")
    site.sql(
        """INSERT INTO chat_generation (id, user_id, engine, model, origin, state, finish_reason, error_code,
           lease_owner, stored_seq, prompt_tokens, reused_head_tokens, reused_prefix_tokens,
           reused_shared_tokens, reused_disk_tokens, trimmed_messages, prefilled_tokens, generated_tokens, queue_ms,
           prefill_ms, decode_ms, ttft_ms, created_at, deadline_at, lease_until)
           SELECT gen_random_uuid(), id, '', '', 'model', 'running', '', '', 'test', 0, 0, 0, 0, 0, 0, 0, 0,
           0, 0, 0, 0, 0,
           now(), now() + interval '1 hour', now() + interval '1 hour'
           FROM accounts_user, generate_series(1, 16) WHERE username = 'busy'"""
    )
    body = {"model": model, "messages": [{"role": "user", "content": "hi"}]}
    headers = {"Authorization": f"Bearer {key}"}
    response = httpx2.post(f"{site.url}/v1/chat/completions", json=body, headers=headers)
    assert response.status_code == 429
    assert response.json()["error"]["type"] == "rate_limit_error"
    assert int(response.headers["retry-after"]) >= 1
    site.sql(
        "UPDATE chat_generation SET deadline_at = now() - interval '1 second' WHERE lease_owner = 'test'"
    )
    response = httpx2.post(f"{site.url}/v1/chat/completions", json=body, headers=headers)
    assert response.status_code == 200, "answers past their deadline must not lock their user out"
