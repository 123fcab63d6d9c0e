"""Snapshots by link: what they hold, who sees them, and that a link that was taken back shows nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio
from django.test import AsyncClient

from chatsite.accounts import brake
from chatsite.accounts.callers import caller_of_user
from chatsite.accounts.models import User
from chatsite.chat import erasure, shared, sharing
from chatsite.chat.models import Conversation, Message, ShareLink
from chatsite.db import run_in_db
from inference.testing import script_text
from tests.chat.api_client import KIND
from tests.chat.socket import Socket

URL = "/api/conversations"
QUESTION, ANSWER = "zqquestion of mine", "zqanswer of the model"
PROMPT = "zqsystemprompt"


def make(owner: User, **columns: Any) -> Conversation:
    row = Conversation.objects.create(owner=owner, title="Rivers", system_prompt=PROMPT, **columns)
    asked = Message.objects.create(conversation=row, role="user", text=QUESTION)
    Message.objects.create(conversation=row, role="assistant", text="zqother variant", parent=asked)
    leaf = Message.objects.create(conversation=row, role="assistant", text=ANSWER, parent=asked)
    row.active_leaf = leaf
    row.save()
    return row


@pytest_asyncio.fixture(loop_scope="package")
async def talk(page: AsyncClient, user: User) -> Conversation:
    return await run_in_db(make, user)


@pytest.fixture
def anybody() -> AsyncClient:
    return AsyncClient()


async def shared_by(page: AsyncClient, talk: Conversation) -> dict[str, Any]:
    answer = await page.post(f"{URL}/{talk.pk}/shares", {}, content_type=KIND)
    assert answer.status_code == 201, answer.content
    return dict(answer.json())


async def test_whoever_has_the_link_sees_the_branch_that_was_shown_and_nothing_else(
    page: AsyncClient, anybody: AsyncClient, talk: Conversation, user: User
) -> None:
    link = await shared_by(page, talk)
    assert re.fullmatch(r"/s/[\w-]{43}", link["url"])
    await run_in_db(
        Message.objects.create, conversation=talk, role="user", text="zqlater", parent_id=talk.active_leaf_id
    )
    response = await anybody.get(link["url"])
    body = response.content.decode()
    assert response.status_code == 200
    assert QUESTION in body and ANSWER in body and "Rivers" in body
    for word in (PROMPT, user.username, "zqother variant", "zqlater", str(talk.pk), link["id"]):
        assert word not in body


async def test_the_page_is_strict_kept_by_nobody_and_sets_no_cookie(
    page: AsyncClient, anybody: AsyncClient, talk: Conversation
) -> None:
    response = await anybody.get((await shared_by(page, talk))["url"])
    policy = response["Content-Security-Policy"]
    for part in (
        "default-src 'none'",
        "connect-src 'none'",
        "form-action 'none'",
        "require-trusted-types-for 'script'",
    ):
        assert part in policy
    assert "unsafe" not in policy and "http" not in policy
    assert "noindex" in response["X-Robots-Tag"]
    assert (response["Cache-Control"], response["Referrer-Policy"]) == ("no-store", "no-referrer")
    assert not response.cookies
    assert "cookie" not in response.get("Vary", "").lower()


async def test_hostile_text_leaves_the_server_as_text(page: AsyncClient, user: User) -> None:
    hostile = '<script>alert(1)</script></div><img src=x onerror="alert(1)">'
    row = await run_in_db(make, user)
    await run_in_db(Message.objects.filter(conversation=row).update, text=hostile)
    await run_in_db(Conversation.objects.filter(pk=row.pk).update, title=hostile)
    body = (await AsyncClient().get((await shared_by(page, row))["url"])).content.decode()
    assert "<script>alert" not in body and "<img" not in body
    assert "&lt;script&gt;alert(1)" in body


async def test_only_a_hash_of_the_secret_is_stored(page: AsyncClient, talk: Conversation) -> None:
    secret = (await shared_by(page, talk))["url"].removeprefix("/s/")
    row = await run_in_db(lambda: ShareLink.objects.values().get())
    assert secret not in json.dumps(row, default=str)
    listed = (await page.get(f"{URL}/{talk.pk}/shares")).json()["items"]
    assert set(listed[0]) == {"id", "num_messages", "created_at", "revoked_at"}


async def test_a_link_that_was_taken_back_shows_nothing_and_keeps_nothing(
    page: AsyncClient, anybody: AsyncClient, talk: Conversation
) -> None:
    link = await shared_by(page, talk)
    other = await shared_by(page, talk)
    for _ in range(2):
        assert (await page.delete(f"/api/shares/{link['id']}")).status_code == 204
    assert (await anybody.get(link["url"])).status_code == 404
    assert (await anybody.get(other["url"])).status_code == 200
    row = await run_in_db(ShareLink.objects.get, pk=link["id"])
    assert (row.title, row.messages) == ("", [])
    listed = (await page.get(f"{URL}/{talk.pk}/shares")).json()["items"]
    assert [item["revoked_at"] is None for item in listed] == [True, False]


async def test_nobody_else_lists_makes_or_takes_back_links(
    page: AsyncClient, stranger: AsyncClient, anybody: AsyncClient, talk: Conversation
) -> None:
    link = await shared_by(page, talk)
    assert (await stranger.get(f"{URL}/{talk.pk}/shares")).status_code == 404
    assert (await stranger.post(f"{URL}/{talk.pk}/shares", {}, content_type=KIND)).status_code == 404
    assert (await stranger.delete(f"/api/shares/{link['id']}")).status_code == 404
    assert (await anybody.get(link["url"])).status_code == 200


async def test_what_is_temporary_empty_or_too_much_is_not_shared(
    page: AsyncClient, user: User, talk: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = await run_in_db(lambda: make(user, is_temporary=True))
    empty = await run_in_db(lambda: Conversation.objects.create(owner=user))
    monkeypatch.setattr(sharing, "MOST_LINKS", 1)
    await shared_by(page, talk)
    long = await run_in_db(make, user)
    monkeypatch.setattr(sharing, "MOST_CHARS", 10)
    for row in (temporary, empty, talk, long):
        answer = await page.post(f"{URL}/{row.pk}/shares", {}, content_type=KIND)
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "not_shareable")
    assert await run_in_db(ShareLink.objects.count) == 1


async def test_an_answer_in_the_making_is_not_shared_by_halves(socket: Socket, page: AsyncClient) -> None:
    first, _ = await socket.ask("first")
    running = await socket.send(
        script_text(text="zqhalf zqhalf zqhalf", delay_ms=400), conversation=first["conversation"]
    )
    await socket.until("delta")
    row = await run_in_db(Conversation.objects.get, pk=first["conversation"])
    link = await shared_by(page, row)
    assert link["num_messages"] == 2
    assert "zqhalf" not in (await AsyncClient().get(link["url"])).content.decode()
    await socket.say("stop", generation=running["generation"])
    await socket.until("done")


async def test_a_site_may_share_nothing(
    page: AsyncClient, anybody: AsyncClient, talk: Conversation, config: Any
) -> None:
    link = await shared_by(page, talk)
    config(sharing=False)
    answer = await page.post(f"{URL}/{talk.pk}/shares", {}, content_type=KIND)
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "sharing_off")
    assert (await anybody.get(link["url"])).status_code == 404
    assert (await page.delete(f"/api/shares/{link['id']}")).status_code == 204


async def test_one_address_looks_at_a_bounded_number(
    page: AsyncClient, anybody: AsyncClient, talk: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = await shared_by(page, talk)
    monkeypatch.setattr(brake, "MOST_LOOKS_PER_ADDRESS", 2)
    statuses = [(await anybody.get(f"/s/{secret}")).status_code for secret in ("x", "y", "z")]
    refused = await anybody.get(link["url"])
    assert statuses == [404, 404, 429]
    assert (refused.status_code, refused["Retry-After"]) == (429, "900")
    assert ANSWER not in refused.content.decode()


async def test_odd_secrets_are_unknown_ones(anybody: AsyncClient, engine: Any) -> None:
    for secret in ("%00", "%ff", "%F0%9F%98%80", "a" * 5000, "..%2f"):
        assert (await anybody.get(f"/s/{secret}")).status_code == 404


async def gone_with_its_conversation(page: AsyncClient, talk: Conversation, user: User) -> None:
    link = await shared_by(page, talk)
    await erasure.erase(caller_of_user(user), talk.pk)
    assert (await AsyncClient().get(link["url"])).status_code == 404
    assert not await run_in_db(ShareLink.objects.exists)


async def gone_with_its_person(page: AsyncClient, talk: Conversation, user: User) -> None:
    link = await shared_by(page, talk)
    await run_in_db(erasure.erase_user_rows, user)
    assert (await AsyncClient().get(link["url"])).status_code == 404
    assert not await run_in_db(ShareLink.objects.exists)


@pytest.mark.parametrize("gone", [gone_with_its_conversation, gone_with_its_person])
async def test_a_snapshot_goes_with_what_it_is_of(
    page: AsyncClient, talk: Conversation, user: User, gone: Callable[..., Awaitable[None]]
) -> None:
    await gone(page, talk, user)


async def test_an_account_that_is_switched_off_shares_nothing(
    page: AsyncClient, anybody: AsyncClient, talk: Conversation, user: User
) -> None:
    link = await shared_by(page, talk)
    await run_in_db(User.objects.filter(pk=user.pk).update, is_active=False)
    assert (await anybody.get(link["url"])).status_code == 404


Check = Callable[[AsyncClient, Conversation, User], Awaitable[None]]


async def strangers_take_nothing_back(page: AsyncClient, talk: Conversation, user: User) -> None:
    link = await shared_by(page, talk)
    other = await run_in_db(User.objects.create_user, f"bob-{uuid4()}", tenant_id=user.tenant_id)
    client = AsyncClient()
    await client.aforce_login(other)
    assert (await client.delete(f"/api/shares/{link['id']}")).status_code == 404
    assert (await client.post(f"{URL}/{talk.pk}/shares", {}, content_type=KIND)).status_code == 404


async def taken_back_is_dark(page: AsyncClient, talk: Conversation, user: User) -> None:
    link = await shared_by(page, talk)
    await page.delete(f"/api/shares/{link['id']}")
    assert (await AsyncClient().get(link["url"])).status_code == 404


async def nothing_is_guessed_from_the_table(page: AsyncClient, talk: Conversation, user: User) -> None:
    link = await shared_by(page, talk)
    row = await run_in_db(ShareLink.objects.get)
    assert link["url"].removeprefix("/s/") not in (row.sha256, str(row.pk))


async def looks_are_counted(page: AsyncClient, talk: Conversation, user: User) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(brake, "MOST_LOOKS_PER_ADDRESS", 1)
        statuses = [(await AsyncClient().get("/s/x")).status_code for _ in range(2)]
    assert statuses == [404, 429]


MUTANTS: dict[str, tuple[Check, Callable[[pytest.MonkeyPatch], None]]] = {
    "links of strangers": (
        strangers_take_nothing_back,
        lambda patch: patch.setattr(
            sharing, "locked", lambda _user, pk: Conversation.objects.select_for_update().get(pk=pk)
        ),
    ),
    "links for ever": (
        taken_back_is_dark,
        lambda patch: patch.setattr(sharing, "revoke", lambda user, link: None),
    ),
    "plain secrets": (
        nothing_is_guessed_from_the_table,
        lambda patch: patch.setattr(sharing, "_digest", lambda secret: secret),
    ),
    "no brake": (looks_are_counted, lambda patch: patch.setattr(brake, "may_look", lambda *_: True)),
    "erased but seen": (
        gone_with_its_person,
        lambda patch: patch.setattr(
            shared.sharing, "seen_by", lambda secret: ShareLink(title="", messages=[])
        ),
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
async def test_each_promise_has_a_mutant_that_is_noticed(
    page: AsyncClient, talk: Conversation, user: User, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    check, mutate = MUTANTS[name]
    mutate(monkeypatch)
    with pytest.raises(AssertionError):
        await check(page, talk, user)
