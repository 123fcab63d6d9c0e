"""A question in other words that keeps its answer: a version made of copies, by which nothing that was said changes."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from django.db import connection
from django.test import AsyncClient
from django.test.utils import CaptureQueriesContext

from chatsite.accounts.models import UsageRecord, User
from chatsite.chat import rewording
from chatsite.chat.models import Conversation, Generation, Message, Role, State
from chatsite.chat.store import BATCH_CHARS
from chatsite.db import run_in_db
from inference.testing import script_text
from tests.chat.api_client import KIND
from tests.chat.socket import Socket

URL = "/api/conversations"


async def talk(socket: Socket) -> str:
    """A conversation of two questions."""
    first, _ = await socket.ask("helo")
    await socket.ask("and then?", conversation=first["conversation"])
    return str(first["conversation"])


async def shown(page: AsyncClient, conversation: str) -> list[dict[str, Any]]:
    return list((await page.get(f"{URL}/{conversation}/messages")).json()["items"])


async def reworded(client: AsyncClient, message: str, text: str, name: str | None = None) -> Any:
    body = {"client_message_id": name or str(uuid4()), "text": text}
    return await client.post(f"/api/messages/{message}/reword", body, content_type=KIND)


async def test_the_version_keeps_what_followed_and_the_old_one_stays(
    socket: Socket, page: AsyncClient
) -> None:
    conversation = await talk(socket)
    before = await shown(page, conversation)
    num_generations = await run_in_db(Generation.objects.count)
    answer = await reworded(page, before[0]["id"], "hello")
    assert answer.status_code == 201, answer.content
    assert answer.json()["variants"] == [before[0]["id"], answer.json()["id"]]
    after = await shown(page, conversation)
    assert [row["text"] for row in after] == ["hello", *[row["text"] for row in before[1:]]]
    assert not {row["id"] for row in after} & {row["id"] for row in before}
    assert [row["parent"] for row in after] == [None, *[row["id"] for row in after[:-1]]]
    old = await page.get(f"{URL}/{conversation}/messages?branch={before[0]['id']}")
    assert [row["text"] for row in old.json()["items"]] == [row["text"] for row in before]
    kept, copied = [await run_in_db(Message.objects.get, pk=rows[1]["id"]) for rows in (before, after)]
    assert kept.token_ids and (copied.token_ids, copied.tokenizer) == (kept.token_ids, kept.tokenizer)
    assert (copied.created_at, copied.state) == (kept.created_at, kept.state)
    # Nothing was asked, and the talk goes on behind the version.
    assert await run_in_db(Generation.objects.count) == num_generations
    assert await run_in_db(UsageRecord.objects.count) == num_generations
    await socket.ask("go on", conversation=conversation)
    assert [row["text"] for row in (await shown(page, conversation))][:5] == [
        *[row["text"] for row in after],
        "go on",
    ]


async def test_the_same_version_is_made_once_and_of_an_answer_it_is_the_question(
    socket: Socket, page: AsyncClient
) -> None:
    conversation = await talk(socket)
    before = await shown(page, conversation)
    name = str(uuid4())
    first = await reworded(page, before[1]["id"], "hello", name)
    again = await reworded(page, before[0]["id"], "hello", name)
    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json()["id"] == first.json()["id"] and first.json()["role"] == "user"
    other = await reworded(page, before[0]["id"], "hullo", name)
    assert (other.status_code, other.json()["error"]["code"]) == (422, "id_reused")
    assert await run_in_db(Message.objects.count) == 8


async def test_one_of_another_branch_is_copied_down_to_its_latest(socket: Socket, page: AsyncClient) -> None:
    conversation = await talk(socket)
    before = await shown(page, conversation)
    await reworded(page, before[0]["id"], "hello")
    await reworded(page, before[0]["id"], "hallo")
    after = await shown(page, conversation)
    assert [row["text"] for row in after] == ["hallo", *[row["text"] for row in before[1:]]]


async def test_long_answers_are_copied_in_statements_that_end_in_time(user: User) -> None:
    def inserts() -> list[str]:
        talk = Conversation.objects.create(owner=user)
        first = above = Message.objects.create(conversation=talk, role=Role.USER, text="helo")
        for number in range(5):
            role = Role.USER if number % 2 else Role.ASSISTANT
            above = Message.objects.create(conversation=talk, parent=above, role=role, text="rain " * 12_000)
        with CaptureQueriesContext(connection) as seen:
            rewording.reword(user.pk, uuid4(), first.pk, "hello")
        return [query["sql"] for query in seen if query["sql"].startswith('INSERT INTO "chat_message"')]

    statements = await run_in_db(inserts)
    assert len(statements) == 3 and max(map(len, statements)) < 2 * BATCH_CHARS


async def test_what_is_being_answered_or_is_no_text_or_not_ones_own_is_refused(
    socket: Socket, page: AsyncClient, stranger: AsyncClient
) -> None:
    running = await socket.send(script_text(text="a b c d e", delay_ms=300))
    await socket.until("delta")
    refused = await reworded(page, running["user_message"], "hello")
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "still_answering")
    await socket.say("stop", generation=running["generation"])
    await socket.until("done")
    for text in ("", "  \n", "nul\x00", "x" * 10**6):
        assert (await reworded(page, running["user_message"], text)).status_code in (400, 413)
    foreign = await reworded(stranger, running["user_message"], "mine now")
    unknown = await reworded(stranger, str(uuid4()), "mine now")
    assert (foreign.status_code, foreign.content) == (404, unknown.content)
    assert await run_in_db(Message.objects.count) == 2
    assert (await reworded(page, running["user_message"], "hello")).status_code == 201


async def test_an_answer_that_answers_nothing_has_no_question(page: AsyncClient, user: User) -> None:
    def alone() -> Message:
        row = Conversation.objects.create(owner=user)
        return Message.objects.create(conversation=row, role="assistant", text="x", state=State.COMPLETE)

    row = await run_in_db(alone)
    assert (await reworded(page, str(row.pk), "hello")).status_code == 400


async def test_other_tabs_are_told(socket: Socket, page: AsyncClient) -> None:
    conversation = await talk(socket)
    await reworded(page, (await shown(page, conversation))[0]["id"], "hello")
    while (frame := await socket.until("changed"))["kind"] != "reworded":
        pass
    assert frame["conversation"] == conversation
