"""Thirty-odd canaries through every door of a live site at its most talkative: they must turn up nowhere (S23, S13).

Secrets: not in logs, metrics, errors, audit log, broker or database. Words of people: not in logs, metrics, broker.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from uuid import uuid4

import httpx2
import pytest
import redis

from tests.chaos.wire import Refused, Wire
from tests.livesite import LiveSite
from tests.patience import PATIENCE_S
from tests.site.conftest import PASSWORD, Property, give, make_person, sign_in

CHAT = "/v1/chat/completions"


class Canaries:
    """Each made once, under a name; `secrets` may be nowhere, `words` are rightly in the database and in answers."""

    def __init__(self) -> None:
        self.secrets: dict[str, str] = {}
        self.words: dict[str, str] = {}

    def secret(self, name: str, value: str = "") -> str:
        return self.secrets.setdefault(name, value or f"canary-{uuid4().hex}")

    def word(self, name: str) -> str:
        return self.words.setdefault(name, f"canary {uuid4().hex}")


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


@contextmanager
def broken(site: LiveSite, table: str, column: str) -> Iterator[None]:
    """A database that refuses statements, and quotes them."""
    site.sql(f"ALTER TABLE {table} RENAME COLUMN {column} TO {column}_away")
    try:
        yield
    finally:
        site.sql(f"ALTER TABLE {table} RENAME COLUMN {column}_away TO {column}")


def use_keys(site: LiveSite, flock: Canaries) -> list[httpx2.Response]:
    good, revoked = site.key("singer"), site.key("singer")
    site.sql("UPDATE accounts_apikey SET revoked_at = now() WHERE prefix = %s", revoked[:13])
    unknown = "rill_" + uuid4().hex + "abcdefghijk"
    for name, key in (("key", good), ("revoked key", revoked), ("unknown key", unknown)):
        flock.secret(name, key)
    odd = [bearer(flock.secret("odd bearer")), {"Authorization": f"Basic {flock.secret('basic')}"}]
    odd += [{"Authorization": flock.secret("bare header")}, {"X-Api-Key": flock.secret("other header")}]
    odd += [bearer(revoked), bearer(unknown), {"Cookie": f"sessionid={flock.secret('cookie')}"}]
    seen = [httpx2.get(f"{site.url}/v1/models", headers=headers) for headers in odd]
    seen.append(httpx2.get(f"{site.url}/metrics", headers=bearer(flock.secret("metrics token"))))
    with httpx2.Client(base_url=site.url, headers=bearer(good), timeout=PATIENCE_S) as client:
        for stream in (False, True):
            words = [{"role": "user", "content": flock.word(f"asked, stream {stream}")}]
            body = {"model": "scripted", "messages": words, "max_tokens": 4, "stream": stream}
            body |= {"user": flock.word("user field"), "prompt_cache_key": flock.word("cache key")}
            body |= {"stop": [flock.word("stop")], "metadata": {"x": flock.word("metadata")}}
            client.post(CHAT, json=body)
        client.post("/v1/embeddings", json={"model": "x", "input": flock.word("embedded")})
        client.post("/v1/responses", json={"model": "scripted", "input": flock.word("response")})
        client.post(CHAT, content=f'{{"model": "{flock.word("half a body")}')
        client.post(CHAT, json={"model": "scripted", "messages": flock.word("wrong type")})
        with broken(site, "chat_generation", "kv_conversation"):
            words = [{"role": "user", "content": flock.word("into a broken database")}]
            body = {"model": "scripted", "messages": words, "user": flock.word("quoted by the database")}
            seen.append(client.post(CHAT, json=body))
    assert seen[-1].status_code == 500, "the database was to fail"
    return seen


def use_pages(site: LiveSite, flock: Canaries) -> list[httpx2.Response]:
    flock.secret("password", PASSWORD)
    make_person(site, "canary-keeper", is_staff=True, is_superuser=True)
    seen = []
    with httpx2.Client(base_url=site.url, timeout=PATIENCE_S) as browser:
        token = flock.secret("csrf token", str(browser.get("/signin").cookies["csrftoken"]))
        form = {"username": "canary-keeper", "csrfmiddlewaretoken": token}
        seen.append(browser.post("/signin", data=form | {"password": flock.secret("wrong password")}))
        seen.append(browser.post("/signin", data={"password": flock.secret("password without token")}))
        new = {"username": "n", "password1": flock.secret("new password"), "password2": "x"}
        seen.append(browser.post("/signup", data=form | new))
        query = {"code": flock.secret("oidc code"), "state": flock.secret("oidc state")}
        seen.append(browser.get("/oidc/callback", params=query))
    rows = Property()
    give(site, "canary-keeper", rows)
    with closing(sign_in(site, "canary-keeper")) as browser:
        flock.secret("session", str(browser.cookies["sessionid"]))
        flock.secret("made key", browser.post("/api/keys", json={"name": "x"}).json()["key"])
        own = f"/api/conversations/{rows.conversation}"
        browser.patch(own, json={"title": flock.word("title"), "system_prompt": flock.word("system prompt")})
        browser.get("/api/conversations", params={"q": flock.word("searched")})
        feedback = {"verdict": "down", "reason": flock.word("feedback")}
        browser.put(f"/api/messages/{rows.message}/feedback", json=feedback)
        with broken(site, "chat_conversation", "system_prompt"):
            changed = browser.patch(own, json={"title": flock.word("title into a broken database")})
            assert changed.status_code == 500, changed.text
        taken = {"username": "fledgling", "tenant": 1, "usable_password": "true"}
        words = {"password1": flock.secret("given password"), "password2": flock.secrets["given password"]}
        browser.post("/admin/accounts/user/add/", data=taken | words | {"csrfmiddlewaretoken": token})
        asyncio.run(use_socket(site, flock, str(browser.cookies["sessionid"])))
        browser.delete(own)
    return seen


async def use_socket(site: LiveSite, flock: Canaries, session: str) -> None:
    port = int(site.url.rpartition(":")[2])
    headers = {"Origin": site.url, "Cookie": f"sessionid={session}"}
    wire = await Wire.open(port, "/ws/chat", headers)
    for text in (flock.word("on the socket"), '{"type": "' + flock.word("frame type")):
        frame = {"type": "send", "client_message_id": str(uuid4()), "text": text}
        await wire.send(json.dumps(frame) if not text.startswith("{") else text)
    await asyncio.wait_for(wire.receive(), PATIENCE_S)
    wire.vanish()
    with pytest.raises(Refused):
        await Wire.open(
            port, "/ws/chat", headers | {"Origin": f"https://{flock.secret('login')}@evil.example"}
        )


def test_no_canary_turns_up_where_it_does_not_belong(site: LiveSite) -> None:
    flock = Canaries()
    flock.secret("SECRET_KEY", site.environ["SECRET_KEY"])
    errors = use_keys(site, flock) + use_pages(site, flock)
    assert len(flock.secrets) + len(flock.words) >= 30
    everything = flock.secrets | flock.words
    places = {
        "web log": (site.log(), everything),
        "engine log": ((site.folder / "engine.log").read_text(), everything),
        "metrics": (httpx2.get(f"{site.url}/metrics").text, everything),
        "broker": (broker(site), everything),
        "audit log": (str(site.sql("SELECT * FROM django_admin_log")), everything),
        "errors": ("".join(response.text for response in errors), flock.secrets),
        "database": (
            database(site),
            {n: v for n, v in flock.secrets.items() if n not in ("session", "csrf token")},
        ),
    }
    assert "DEBUG" in places["web log"][0] and "ProgrammingError" in places["web log"][0]
    found = [
        (place, name)
        for place, (text, birds) in places.items()
        for name, bird in birds.items()
        if bird in text
    ]
    assert found == []


def broker(site: LiveSite) -> str:
    """Every value of the broker: messages, results, channel layer."""
    with redis.Redis.from_url(site.environ["REDIS_URL"]) as client:
        keys = client.keys("*")
        return repr([(key, client.dump(key)) for key in keys])


def database(site: LiveSite) -> str:
    """Every row of every table."""
    tables = site.sql("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    return "".join(str(site.sql(f'SELECT t::text FROM "{name}" t')) for (name,) in tables)
