"""A stored answer beside what the model says now, over the API: by permission, made by a worker, one at a time."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.test import AsyncClient

from chatsite.accounts.models import User
from chatsite.db import run_in_db
from semcache import tasks
from semcache.models import CacheComparison, CacheEntry
from tests.chat.socket import Socket
from tests.chat.test_cache_api import Ask, ask, make_staff

__all__ = ["ask"]
TEXT = "What is the capital of France?"


@pytest.fixture(autouse=True)
def no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks.make_comparisons, "delay", lambda: None)


async def test_the_nearest_answer_is_compared_with_the_models(ask: Ask, caching: Socket, user: User) -> None:
    await caching.ask(TEXT)
    entry = await run_in_db(CacheEntry.objects.get)
    asked = {"text": TEXT, "tenant": str(user.tenant_id), "owner": f"user:{user.pk}"}
    status, begun = await ask("post", "/comparisons", asked)
    assert (status, begun["state"], begun["entry"]) == (202, "waiting", entry.pk)
    status, refused = await ask("post", "/comparisons", asked | {"entry": entry.pk})
    assert (status, refused["error"]["code"]) == (409, "still_comparing")
    await run_in_db(tasks.make_comparisons)
    status, ended = await ask("get", f"/comparisons/{begun['id']}")
    assert (status, ended["state"], ended["is_same"], ended["trouble"]) == (200, "done", True, "")
    assert ended["made"] == ended["stored_answer"] == entry.answer and ended["ended_at"]
    assert await run_in_db(CacheEntry.objects.count) == 1
    await run_in_db(CacheComparison.objects.all().delete)


async def test_without_a_stored_answer_there_is_nothing_to_compare(ask: Ask, caching: Socket) -> None:
    for body in ({"text": "Is there anything?"}, {"text": TEXT, "entry": 999_999}):
        status, told = await ask("post", "/comparisons", body)
        assert (status, told["error"]["code"]) == (404, "not_found")
    assert (await ask("get", "/comparisons/999999"))[0] == 404


@pytest.mark.parametrize("lacking", ["view_cacherule", "view_cacheentry"])
async def test_it_takes_both_permissions(engine: Any, lacking: str) -> None:
    def make() -> str:
        person, secret = make_staff("sam", is_staff=True)
        rights = {"view_cacherule", "view_cacheentry"} - {lacking}
        person.user_permissions.set(Permission.objects.filter(codename__in=rights))
        return secret

    headers = {"Authorization": f"Bearer {await run_in_db(make)}"}
    page = AsyncClient()
    sent = await page.post(
        "/api/cache/comparisons", {"text": TEXT}, headers=headers, content_type="application/json"
    )
    seen = await page.get("/api/cache/comparisons/1", headers=headers)
    assert [answer.status_code for answer in (sent, seen)] == [403, 403]
    assert lacking in sent.json()["error"]["message"]
