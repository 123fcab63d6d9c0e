"""Prompt templates: one's own and everybody's, variables, and starters by use."""

from __future__ import annotations

from typing import Any

import pytest_asyncio
from django.test import AsyncClient

from chatsite.accounts import keys
from chatsite.accounts.models import User
from chatsite.chat.models import PromptTemplate
from chatsite.db import run_in_db
from tests.chat.api_client import KIND

URL = "/api/templates"


@pytest_asyncio.fixture(autouse=True, loop_scope="package")
async def bare(transactional_db: None) -> None:
    """Without those that every installation starts with."""
    await run_in_db(PromptTemplate.objects.all().delete)


async def made(client: AsyncClient, title: str, body: str = "text", **more: Any) -> Any:
    return await client.post(URL, {"title": title, "body": body} | more, content_type=KIND)


async def titles(client: AsyncClient, **query: str) -> list[str]:
    return [row["title"] for row in (await client.get(URL, query)).json()]


async def test_own_templates_are_made_changed_used_and_erased(page: AsyncClient) -> None:
    answer = await made(
        page, "Translate", "Into {{language}}: {{ text }} ({{language}}) {{not this one}} {x}"
    )
    assert (answer.status_code, answer.json()["variables"]) == (201, ["language", "text"])
    url = f"{URL}/{answer.json()['id']}"
    for values, text, missing in (
        ({}, "Into {{language}}: {{ text }} ({{language}}) {{not this one}} {x}", ["language", "text"]),
        ({"language": "{{text}}", "text": "\\1"}, "Into {{text}}: \\1 ({{text}}) {{not this one}} {x}", []),
    ):
        used = await page.post(f"{url}/use", {"values": values}, content_type=KIND)
        assert used.json() == {"text": text, "missing": missing}
    changed = await page.patch(url, {"title": "Render"}, content_type=KIND)
    assert (changed.json()["title"], changed.json()["use_count"]) == ("Render", 2)
    assert (await page.get(url)).json() == changed.json()
    assert (await page.delete(url)).status_code == 204
    assert (await page.get(url)).status_code == 404


async def test_starters_are_ranked_by_use_within_a_language(page: AsyncClient) -> None:
    for title, language, is_starter, uses in (
        ("seldom", "en", True, 1),
        ("often", "en", True, 3),
        ("no starter", "en", False, 9),
        ("经常", "zh-hans", True, 5),
    ):
        row = (await made(page, title, language=language, is_starter=is_starter)).json()
        for _ in range(uses):
            await page.post(f"{URL}/{row['id']}/use", {}, content_type=KIND)
    assert await titles(page) == ["no starter", "经常", "often", "seldom"]
    assert await titles(page, starters="true", language="en") == ["often", "seldom"]


async def test_only_signed_in_staff_keeps_everybodys(
    page: AsyncClient, stranger: AsyncClient, user: User, other_user: User
) -> None:
    assert (await made(page, "mine for all", is_shared=True)).status_code == 403
    await run_in_db(User.objects.filter(pk=other_user.pk).update, is_staff=True)
    shared = (await made(stranger, "everybody's", is_shared=True)).json()
    private = (await made(stranger, "private")).json()
    assert await titles(page) == ["everybody's"]
    url = f"{URL}/{shared['id']}"
    _, secret = await run_in_db(keys.create_key, other_user, "staff's key", ["chat"])
    key = {"Authorization": f"Bearer {secret}"}
    for client, headers in ((page, {}), (AsyncClient(), key)):
        for answer in (
            await client.patch(url, {"title": "taken"}, content_type=KIND, headers=headers),
            await client.delete(url, headers=headers),
        ):
            assert (answer.status_code, answer.json()["error"]["code"]) == (403, "staff_only")
    assert (await page.post(f"{url}/use", {}, content_type=KIND)).status_code == 200
    assert (await stranger.patch(url, {"title": "changed"}, content_type=KIND)).status_code == 200
    foreign, unknown = f"{URL}/{private['id']}", f"{URL}/{10**17}"
    for answers in [
        [await page.get(foreign), await page.get(unknown)],
        [await page.patch(path, {"title": "x"}, content_type=KIND) for path in (foreign, unknown)],
        [await page.post(f"{path}/use", {}, content_type=KIND) for path in (foreign, unknown)],
        [await page.delete(foreign), await page.delete(unknown)],
    ]:
        assert [answer.status_code for answer in answers] == [404, 404]
        assert answers[0].content == answers[1].content


async def test_over_posting_and_odd_values_change_nothing(page: AsyncClient, user: User) -> None:
    row = (await made(page, "mine")).json()
    for body in (
        {"owner": None},
        {"is_shared": True},
        {"use_count": 99},
        {"title": ""},
        {"language": "x" * 17},
        {"body": "x" * 20_001},
    ):
        answer = await page.patch(f"{URL}/{row['id']}", body, content_type=KIND)
        assert answer.status_code == 400, body
    assert (await page.patch(f"{URL}/{2**70}", {}, content_type=KIND)).status_code in (400, 404)
    stored = await run_in_db(PromptTemplate.objects.get, pk=row["id"])
    assert (stored.title, stored.owner_id, stored.use_count) == ("mine", user.pk, 0)


async def test_a_list_that_is_kept_is_asked_for_again_only_when_it_changed(page: AsyncClient) -> None:
    url = f"{URL}/{(await made(page, 'Translate')).json()['id']}"
    first = await page.get(URL)
    kept = {"If-None-Match": first["ETag"]}
    unchanged = await page.get(URL, headers=kept)
    assert (unchanged.status_code, unchanged.content, unchanged["ETag"]) == (304, b"", first["ETag"])
    await page.post(f"{url}/use", {}, content_type=KIND)
    changed = await page.get(URL, headers=kept)
    assert (changed.status_code, changed.json()[0]["use_count"]) == (200, 1)
    assert changed["ETag"] != first["ETag"]
