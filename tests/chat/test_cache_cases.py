"""Regression cases over the API: kept, run and told as on their pages, and by the same permissions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.test import AsyncClient

from chatsite.accounts.models import User
from chatsite.chat import trial
from chatsite.db import run_in_db
from semcache import tasks
from semcache.models import CacheCase, CacheEntry, CacheRule
from tests.chat.socket import Socket
from tests.chat.test_cache_api import KIND, Ask, ask, make_staff, said_of

__all__ = ["ask"]
TEXT = "What is the capital of France?"


@pytest.fixture(autouse=True)
def calls(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """How often a worker was called."""
    sent: list[bool] = []
    monkeypatch.setattr(tasks.run_cases, "delay", lambda: sent.append(True))

    async def idle() -> bool:
        return False

    monkeypatch.setattr(trial, "is_busy", idle)
    return sent


def by_key(secret: str) -> Callable[..., Awaitable[Any]]:
    async def sent(method: str, path: str, body: Any = None) -> Any:
        kind = {} if method == "get" else {"content_type": KIND}
        headers = {"Authorization": f"Bearer {secret}"}
        return await getattr(AsyncClient(), method)(f"/api/cache{path}", body, headers=headers, **kind)

    return sent


async def test_a_case_is_kept_run_changed_and_deleted(
    ask: Ask, caching: Socket, user: User, calls: list[bool]
) -> None:
    await caching.ask(TEXT)
    entry = await run_in_db(CacheEntry.objects.get)
    asked = {"question": TEXT, "tenant": str(user.tenant_id), "owner": f"user:{user.pk}"}
    status, case = await ask(
        "post", "/cases", asked | {"expected": "hit", "entry": entry.pk, "rule": "everything"}
    )
    assert (status, case["state"], case["is_due"]) == (201, "new", True) and calls == [True]
    assert (await run_in_db(CacheCase.objects.get)).generation == entry.generation
    await run_in_db(tasks.run_cases)
    status, told = await ask("get", f"/cases/{case['id']}")
    assert (status, told["state"], told["is_due"], told["problems"]) == (200, "passed", False, [])
    assert told["got"] == {"outcome": "hit-exact", "reason": "exact", "rule": "everything", "entry": entry.pk}
    status, told = await ask("patch", f"/cases/{case['id']}", {"expected": "miss"})
    assert (status, told["state"], told["got"]["outcome"], told["rule"]) == (200, "new", "", "everything")
    await run_in_db(tasks.run_cases)
    (failed,) = (await ask("get", "/cases?state=failed"))[1]
    assert failed["problems"] == ["outcome"] and failed["why"].startswith("expected was")
    assert (await ask("get", "/cases?state=passed"))[1] == []
    assert await ask("post", "/cases/run", {"ids": [case["id"], 999_999]}) == (202, {"num": 1})
    assert await ask("post", "/cases/run", {}) == (202, {"num": 1})
    assert (await ask("delete", f"/cases/{case['id']}"))[0] == 204
    assert (await ask("get", f"/cases/{case['id']}"))[0] == 404
    said = await said_of("cachecase")
    assert [line.partition(" (by key")[0] for line in said] == [
        "deleted", "expected: hit -> miss", "added: expects hit",
    ]  # fmt: skip


async def test_a_rule_that_changed_has_its_cases_run_by_the_next_schedule(
    ask: Ask, caching: Socket, user: User
) -> None:
    await caching.ask(TEXT)
    asked = {"question": TEXT, "tenant": str(user.tenant_id), "owner": f"user:{user.pk}"}
    await ask("post", "/cases", asked | {"expected": "hit"})
    await run_in_db(tasks.run_cases)
    rule = await run_in_db(CacheRule.objects.get)
    await ask("patch", f"/rules/{rule.pk}", {"mode": "off"})
    await run_in_db(tasks.run_cases)
    assert [case["got"]["reason"] for case in (await ask("get", "/cases?state=failed"))[1]] == ["rule-off"]


@pytest.mark.parametrize(
    ("body", "status", "param"),
    [
        ({"question": "a", "expected": "never"}, 400, "expected"),
        ({"question": "a", "expected": "miss", "answer_part": "x"}, 400, "expected"),
        ({"question": "a", "expected": "maybe"}, 400, "body.expected"),
        ({"question": "a", "expected": "miss", "wrong": 1}, 400, "body.wrong"),
        ({"question": "a", "expected": "hit", "entry": 999_999}, 400, "entry"),
    ],
)
async def test_what_makes_no_sense_is_refused(
    ask: Ask, body: dict[str, Any], status: int, param: str
) -> None:
    got, told = await ask("post", "/cases", body)
    assert (got, told["error"]["param"]) == (status, param), told
    assert await run_in_db(CacheCase.objects.count) == 0


async def test_the_same_case_is_not_kept_twice(ask: Ask) -> None:
    body = {"question": "a", "expected": "miss"}
    assert [(await ask("post", "/cases", body))[0] for _ in range(2)] == [201, 409]


async def test_who_may_not_see_entries_neither_sees_nor_says_words_of_them(engine: Any) -> None:
    def make() -> tuple[str, int]:
        person, secret = make_staff("sam", is_staff=True)
        person.user_permissions.set(
            Permission.objects.filter(codename__in=["view_cacherule", "change_cacherule"])
        )
        case = CacheCase.objects.create(
            question="a", expected="hit", stored_question="SECRET", definition="x",
            created_at=person.date_joined,
        )  # fmt: skip
        return secret, case.pk

    secret, case = await run_in_db(make)
    send = by_key(secret)
    seen = await send("get", "/cases")
    assert b"SECRET" not in seen.content and seen.json()[0]["stored_question"] is None
    for body in ({"stored_question": "guess"}, {"answer_part": "guess"}):
        answer = await send("patch", f"/cases/{case}", body)
        assert answer.status_code == 403
    answer = await send("patch", f"/cases/{case}", {"note": "x"})
    assert answer.status_code == 200
    assert (await run_in_db(CacheCase.objects.get)).stored_question == "SECRET"


async def test_who_may_only_look_changes_nothing(engine: Any) -> None:
    def make() -> str:
        person, secret = make_staff("sam", is_staff=True)
        person.user_permissions.set(Permission.objects.filter(codename="view_cacherule"))
        return secret

    send = by_key(await run_in_db(make))
    assert (await send("get", "/cases")).status_code == 200
    body = {"question": "a", "expected": "miss"}
    answers = [
        await send("post", "/cases", body),
        await send("post", "/cases/run", {}),
        await send("patch", "/cases/1", body),
        await send("delete", "/cases/1"),
    ]
    assert [answer.status_code for answer in answers] == [403] * 4
