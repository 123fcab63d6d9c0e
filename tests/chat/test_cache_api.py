"""The cache's administration for programs: for staff only, with the checks, the effects and the log of its pages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import pytest_asyncio
from django.contrib.admin.models import LogEntry
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import AsyncClient

from chatsite.accounts import keys
from chatsite.accounts.models import Tenant, User
from chatsite.db import run_in_db
from semcache import service, tasks
from semcache.imports import batches
from semcache.models import CacheEntry, CacheRule
from tests.chat.socket import Socket

KIND = "application/json"
Ask = Callable[..., Awaitable[Any]]


def make_staff(name: str, *scopes: str, **columns: bool) -> tuple[User, str]:
    tenant, _ = Tenant.objects.get_or_create(is_default=True, defaults={"slug": "default", "name": "Default"})
    user = User.objects.create_user(name, tenant=tenant, **columns)
    return user, keys.create_key(user, "key", scopes or ["cache-admin"])[1]


@pytest_asyncio.fixture(loop_scope="package")
async def ask(engine: Any) -> Ask:
    """A request to the cache's API by the key of a superuser; the status and what came back."""
    _, secret = await run_in_db(make_staff, "root", is_staff=True, is_superuser=True)

    async def asked(method: str, path: str, body: Any = None) -> tuple[int, Any]:
        send = getattr(AsyncClient(), method)
        headers = {"Authorization": f"Bearer {secret}"}
        kind = {} if method == "get" else {"content_type": KIND}
        answer = await send(f"/api/cache{path}", body, headers=headers, **kind)
        return answer.status_code, answer.json() if answer.content else None

    return asked


async def said_of(model: str) -> list[str]:
    """What the audit log has, newest first."""
    lines = LogEntry.objects.filter(content_type__model=model).order_by("-pk")
    return await run_in_db(lambda: list(lines.values_list("change_message", flat=True)))


PATHS = ("/rules", "/entries", "/imports")


async def test_only_staff_with_the_scope_and_the_permission_gets_in(engine: Any) -> None:
    everybody = {
        "superuser": (await run_in_db(make_staff, "root", is_staff=True, is_superuser=True), 200, None),
        "no staff": (await run_in_db(make_staff, "eve"), 403, "staff_only"),
        "no permission": (await run_in_db(make_staff, "sam", is_staff=True), 403, "staff_only"),
        "no scope": (
            await run_in_db(make_staff, "ron", "chat", is_staff=True, is_superuser=True),
            403,
            "missing_scope",
        ),
    }
    for name, ((user, secret), status, code) in everybody.items():
        by_key, page = AsyncClient(), AsyncClient()
        await page.aforce_login(user)
        for path in PATHS:
            answer = await by_key.get(f"/api/cache{path}", headers={"Authorization": f"Bearer {secret}"})
            assert answer.status_code == status, (name, path)
            assert code is None or answer.json()["error"]["code"] == code
            in_session = await page.get(f"/api/cache{path}")
            assert in_session.status_code == (200 if user.is_superuser else 403), (name, path)
    for path in PATHS:
        assert (await AsyncClient().get(f"/api/cache{path}")).status_code == 401


async def test_rules_are_made_changed_ordered_and_deleted_as_on_their_pages(ask: Ask) -> None:
    await run_in_db(lambda: CacheRule.objects.all().delete())
    status, made = await ask(
        "post", "/rules", {"name": "Hours", "keywords": [" open, now ", "open, now"], "ttl_s": 60}
    )
    assert (status, made["keywords"], made["mode"], made["capacity"]) == (
        201,
        ["open, now"],
        "semantic",
        10_000,
    )
    url = f"/rules/{made['id']}"
    for bad, param in (
        ({"pattern": "(a"}, "pattern"),
        ({"pattern": "(?P<n>a)(?P<n>b)"}, "pattern"),
        ({"accept_similarity": 0.5, "verify_similarity": 0.9}, "verify_similarity"),
        ({"ttl_s": 0}, "ttl_s"),
        ({"unknown": 1}, "unknown"),
    ):
        status, error = await ask("patch", url, bad)
        assert (status, error["error"]["param"].rpartition(".")[2]) == (400, param)
    status, error = await ask("post", "/rules", {"name": "Hours"})
    assert (status, error["error"]["code"], error["error"]["param"]) == (409, "name_taken", "name")
    status, changed = await ask("patch", url, {"ttl_s": 120, "examples": ["when, do you open?"]})
    assert (status, changed["ttl_s"], changed["examples"]) == (200, 120, ["when, do you open?"])
    assert changed["keywords"] == made["keywords"], "what was not given stays"
    _, other = await ask("post", "/rules", {"name": "Other"})
    status, listed = await ask("put", "/rules/order", {"ids": [other["id"], made["id"]]})
    assert (status, [rule["priority"] for rule in listed]) == (200, [10, 20])
    assert [rule["name"] for rule in listed] == ["Other", "Hours"]
    assert (await ask("put", "/rules/order", {"ids": [made["id"]]}))[0] == 409
    # Of what other tests have asked nothing is like this.
    like_nothing = {"keywords": ["zebra crossing"], "examples": []}
    status, tried = await ask("post", "/rules/dry-run", {"rule": made["id"]} | like_nothing)
    assert (status, tried["num_matched"]) == (200, 0)
    for name in ({}, {"name": None}, {"name": "Other"}):
        status, _ = await ask("post", "/rules/dry-run", name | {"keywords": ["x"]})
        assert status == 200, "what is not saved needs no name of its own"
    assert (await ask("get", url))[1]["keywords"] == made["keywords"], "nothing was saved"
    assert "Weather" in (await ask("post", "/rules/presets", {}))[1]["added"]
    status, told = await ask("get", f"{url}/statistics?hours=3")
    assert (status, len(told["hours"]), told["sampled"]["num"]) == (200, 3, 0)
    assert (await ask("delete", url))[0] == 204
    assert [
        (await ask(method, url, {} if method == "patch" else None))[0]
        for method in ("get", "patch", "delete")
    ] == [404] * 3
    lines = await said_of("cacherule")
    assert any("ttl_s: 60 -> 120" in line for line in lines)
    assert all("(by key rill_" in line for line in lines), "the log names the key"


async def test_a_rule_acts_at_once_on_what_is_asked(ask: Ask, caching: Socket) -> None:
    await caching.ask("What is the capital of France?")
    _, hit = await caching.ask("What is the capital of France?")
    assert hit["origin"] == "exact"
    ((rule,),) = await run_in_db(lambda: list(CacheRule.objects.values_list("pk")))
    assert (await ask("patch", f"/rules/{rule}", {"mode": "off"}))[0] == 200
    _, missed = await caching.ask("What is the capital of France?")
    assert missed["origin"] == "model"
    await service.flush_hits()
    figures = (await ask("get", f"/rules/{rule}"))[1]["figures"]
    assert (figures["entries"], figures["exact_hits_24h"]) == (1, 1)


async def test_stored_answers_are_found_corrected_kept_and_evicted(
    ask: Ask, caching: Socket, user: User
) -> None:
    for name in ("France", "Spain", "Italy"):
        await caching.ask(f"What is the capital of {name}?")
    status, page = await ask("get", f"/entries?q=capital%20spain&owner=user:{user.pk}")
    (entry,) = page["items"]
    assert (status, entry["owner"], page["next"]) == (200, f"user:{user.pk}", None)
    url = f"/entries/{entry['id']}"
    assert (await ask("patch", url, {"answer": "Madrid.", "answer_sha256": "sha256 0"}))[0] == 400
    assert (await ask("patch", url, {"answer": "  "}))[0] == 400
    status, edited = await ask("patch", url, {"answer": "Madrid.", "answer_sha256": entry["answer_sha256"]})
    assert (status, edited["answer"]) == (200, "Madrid.")
    accepted, hit = await caching.ask("What is the capital of Spain?")
    assert (hit["origin"], caching.texts[accepted["generation"]]) == ("exact", "Madrid.")
    assert (await ask("post", "/entries/act", {"act": "pin", "ids": [entry["id"], 10**9]}))[1] == {"num": 1}
    assert (await ask("get", url))[1]["is_pinned"] is True
    assert (await ask("post", "/entries/evict", {}))[0] == 400, "nothing chosen is not everything"
    assert (await ask("post", "/entries/evict", {"older_than_h": 0, "dry_run": True}))[1] == {"num": 3}
    assert (await ask("post", "/entries/act", {"act": "evict", "ids": [entry["id"]]}))[1] == {"num": 1}
    assert (await ask("post", "/entries/evict", {"owner": f"user:{user.pk}"}))[1] == {"num": 2}
    assert await run_in_db(CacheEntry.objects.count) == 0
    assert (await ask("get", url))[0] == 404
    lines = await said_of("cacheentry")
    assert len(lines) == 4 and all("(by key rill_" in line for line in lines)
    assert not any("Madrid" in line for line in lines), "the log keeps no answer"


async def test_a_question_is_tried_as_on_its_page(ask: Ask, caching: Socket, user: User) -> None:
    await caching.ask("What is the capital of France?")
    asked = {
        "text": "What is the capital of France?",
        "tenant": str(user.tenant_id),
        "owner": f"user:{user.pk}",
    }
    status, told = await ask("post", "/test", asked)
    assert (status, told["decision"]["outcome"]) == (200, "hit-exact")
    assert [rule["name"] for rule in told["rules"] if rule["is_winner"]] == ["everything"]
    assert set(told["decision"]["steps_ms"]) >= {"rule", "exact"}
    page = AsyncClient()
    await page.aforce_login(await run_in_db(User.objects.get, username="root"))
    shown = (await page.get("/admin/semcache/cacherule/try.json", asked)).json()
    for one in (shown, told):
        del one["decision"]["steps_ms"]
    assert told == shown


FAQ = "question,answer\nWhen do you open?,From 9 to 17.\nWhere are you?,In Bern.\n,nothing\n"


async def test_answers_are_brought_in_from_a_file(
    ask: Ask, caching: Socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks.store_imports, "delay", lambda: None)
    rule = await run_in_db(lambda: CacheRule.objects.create(name="faq", sharing="public", priority=1))
    service.forget_rules()
    page = AsyncClient()
    await page.aforce_login(await run_in_db(User.objects.get, username="root"))

    async def send(content: bytes, **fields: Any) -> Any:
        file = SimpleUploadedFile("faq.csv", content, "text/csv")
        return await page.post("/api/cache/imports", {"rule": rule.pk, "file": file} | fields)

    for bad in (b"", b"a,b\n1,2\n", "question,answer\né".encode("utf-16")):
        answer = await send(bad)
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, "file")
    answer = await send(FAQ.encode(), dry_run="true")
    assert answer.status_code == 200, answer.content
    tried = answer.json()
    assert (tried["id"], tried["num_rows"], tried["num_refused"]) == (None, 3, 1)
    assert tried["refused"] == [{"line": 4, "why": "empty", "about": ""}]
    begun = await send(FAQ.encode())
    assert begun.status_code == 202
    while await run_in_db(batches.store_next, begun.json()["id"]):
        pass
    status, told = await ask("get", f"/imports/{begun.json()['id']}")
    assert (status, told["state"], told["num_done"]) == (200, "done", 2)
    assert (await ask("get", "/imports"))[1][0]["id"] == told["id"]
    accepted, hit = await caching.ask("When do you open?")
    assert (hit["origin"], caching.texts[accepted["generation"]]) == ("exact", "From 9 to 17.")


async def test_a_row_has_one_address(ask: Ask) -> None:
    status, rule = await ask("post", "/rules", {"name": "hours", "keywords": ["hours"]})
    assert status == 201
    number = rule["id"]
    assert (await ask("get", f"/rules/{number}"))[0] == 200
    for other in (f"{number}.0", f"0{number}", f"+{number}", f"%20{number}", f"{number}e0", "0", "x"):
        assert (await ask("get", f"/rules/{other}"))[0] == 400, other
