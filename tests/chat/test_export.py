"""Everything of a person as one file: by a link that works once, for its owner's session, for ten minutes."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import zipfile
from datetime import timedelta
from typing import Any

from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.test import AsyncClient
from django.utils import timezone

from chatsite.accounts import keys
from chatsite.accounts.models import UsageRecord, User
from chatsite.chat.models import Conversation, ExportLink, PromptTemplate
from chatsite.db import run_in_db
from tests.chat.socket import Socket

KIND = "application/json"


async def browser(user: User) -> AsyncClient:
    client = AsyncClient()
    await client.aforce_login(user)
    return client


async def content_of(answer: Any) -> bytes:
    return b"".join([piece async for piece in answer.streaming_content])


async def test_an_export_holds_everything_of_its_owner_and_no_secret(
    caching: Socket, user: User, other_user: User
) -> None:
    accepted, _ = await caching.ask("What is the capital of France?")
    page = await browser(user)
    url = f"/api/conversations/{accepted['conversation']}"
    await page.patch(url, {"title": "=HYPERLINK(1)", "tags": ["trips"]}, content_type=KIND)
    said = {"verdict": "down", "reason": "too short"}
    await page.put(f"/api/messages/{accepted['answer']}/feedback", said, content_type=KIND)

    def more() -> str:
        PromptTemplate.objects.create(owner=user, title="Mine", body="Write about {topic}")
        Conversation.objects.create(owner=other_user, title="of somebody else")
        UsageRecord.objects.filter(user=user).update(model="=1+1")
        return keys.create_key(user, "laptop", ["chat"])[1]

    secret = await run_in_db(more)
    made = await page.post("/api/me/export", {}, content_type=KIND)
    assert made.status_code == 201
    taken = await page.get(made.json()["url"])
    assert (taken.status_code, taken["Content-Type"], taken["Cache-Control"]) == (
        200,
        "application/zip",
        "no-store",
    )
    with zipfile.ZipFile(io.BytesIO(await content_of(taken))) as archive:
        assert archive.testzip() is None
        texts = {name: archive.read(name).decode("utf-8-sig") for name in archive.namelist()}
    name = f"conversations/{accepted['conversation']}"
    (told,) = json.loads(texts[f"{name}.json"])["conversations"]
    assert (told["title"], told["tags"]) == ("=HYPERLINK(1)", ["trips"])
    assert told["messages"][0]["text"] == "What is the capital of France?"
    assert told["messages"][1]["feedback"] == said
    assert texts[f"{name}.md"].startswith("# =HYPERLINK(1)")
    account = json.loads(texts["account.json"])
    assert (account["name"], account["api_keys"][0]["name"]) == ("ada", "laptop")
    assert json.loads(texts["shares.json"]) == []
    assert json.loads(texts["templates.json"])[0]["body"] == "Write about {topic}"
    assert json.loads(texts["cached-answers-1.jsonl"])["question"].lower() == "what is the capital of france?"
    rows = list(csv.DictReader(io.StringIO(texts["usage-1.csv"])))
    assert [row["model"] for row in rows] == ["'=1+1"], "a spreadsheet calculates no cell"
    everything = "".join(texts.values())
    assert secret not in everything and "sha256" not in everything and "somebody else" not in everything


async def test_a_link_works_once_for_its_owner_while_it_is_young(
    engine: Any, user: User, other_user: User
) -> None:
    page, stranger = await browser(user), await browser(other_user)
    url = (await page.post("/api/me/export", {}, content_type=KIND)).json()["url"]
    assert url.rpartition("/")[2] not in str(await run_in_db(lambda: ExportLink.objects.values_list().get()))
    assert (await stranger.get(url)).status_code == 404
    assert (await AsyncClient().get(url)).status_code == 401
    both = await asyncio.gather(page.get(url), page.get(url))
    assert sorted(answer.status_code for answer in both) == [200, 404], "one of two gets it"
    await asyncio.gather(*(content_of(answer) for answer in both if answer.status_code == 200))
    late = (await page.post("/api/me/export", {}, content_type=KIND)).json()["url"]
    past = timezone.now() - timedelta(seconds=1)
    await run_in_db(ExportLink.objects.filter(used_at=None).update, expires_at=past)
    assert (await page.get(late)).status_code == 404


async def test_a_key_neither_exports_nor_erases(engine: Any, user: User) -> None:
    _, secret = await run_in_db(keys.create_key, user, "key", ["chat", "usage"])
    client, key = AsyncClient(), {"Authorization": f"Bearer {secret}"}
    for path in ("/api/me/export", "/api/me/erase"):
        answer = await client.post(path, {}, content_type=KIND, headers=key)
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "session_required")
    assert await run_in_db(User.objects.filter(pk=user.pk).exists)


async def test_a_person_is_erased_by_the_password_or_where_there_is_none_by_the_name(
    engine: Any, user: User, other_user: User
) -> None:
    await run_in_db(_set_password, user, "correct horse battery")
    page, bare = await browser(user), await browser(other_user)

    async def erase(client: AsyncClient, **body: str) -> Any:
        return await client.post("/api/me/erase", body, content_type=KIND)

    for wrong in ({}, {"password": "wrong"}, {"name": "ada"}):
        assert (await erase(page, **wrong)).json()["error"]["code"] == "not_confirmed"
    assert (await erase(bare, name="ada")).status_code == 403
    erased = await erase(page, password="correct horse battery")
    assert erased.status_code == 202
    assert (await AsyncClient().get(erased.json()["url"])).json()["what"] == "person"
    assert (await page.get("/api/conversations")).status_code == 401
    assert (await erase(bare, name="bob")).status_code == 202
    assert not await run_in_db(User.objects.filter(username__in=["ada", "bob"]).exists)


async def test_passwords_are_not_guessed_here_either(engine: Any, user: User) -> None:
    await run_in_db(_set_password, user, "correct horse battery")
    page = await browser(user)
    tried = [await page.post("/api/me/erase", {"password": str(n)}, content_type=KIND) for n in range(6)]
    assert [answer.status_code for answer in tried] == [403] * 5 + [429]
    assert tried[-1]["Retry-After"]


def _set_password(user: User, password: str) -> None:

    hashed = PBKDF2PasswordHasher().encode(password, "salt", iterations=1)
    User.objects.filter(pk=user.pk).update(password=hashed)
    user.refresh_from_db()
