"""Conversations leave as files and come back equal; what cannot be taken is refused whole, with where and why."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.test import AsyncClient

from chatsite.accounts.models import User
from chatsite.chat.models import Conversation, Feedback, Generation, Message
from chatsite.chat.transfer import chatgpt
from chatsite.chat.transfer import rows as transfer_rows
from chatsite.db import run_in_db
from tests.chat.api_client import KIND, read
from tests.chat.socket import Socket

IMPORT = "/api/conversations/import"
MOMENT = "2026-01-01T12:00:00Z"
HOSTILE = "<script>alert(1)</script> [x](javascript:alert(1)) ' OR 1=1 -- \u202e\x1b[31m ```\n# You\n\\"


def turn(number: int, parent: int | None, role: str, text: str = "text", **more: Any) -> dict[str, Any]:
    return {
        "number": number,
        "parent": parent,
        "role": role,
        "text": text,
        "created_at": MOMENT,
    } | more


def talk(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "title": "t",
        "created_at": MOMENT,
        "updated_at": MOMENT,
        "messages": list(messages),
    } | more


def file_of(*talks: dict[str, Any]) -> dict[str, Any]:
    return {"format": "rill-conversations", "version": 1, "conversations": list(talks)}


async def exported(page: AsyncClient, path: str = "/api/conversations/export", **query: str) -> bytes:
    answer = await page.get(path, query)
    assert answer.status_code == 200
    assert "attachment" in answer["Content-Disposition"]
    return await read(answer)


async def imported(page: AsyncClient, value: Any) -> Any:
    return await page.post(IMPORT, json.dumps(value), content_type=KIND)


async def counts() -> list[int]:
    models = (Conversation, Message, Generation, Feedback)
    return [await run_in_db(model.objects.count) for model in models]


async def test_what_leaves_comes_back_equal_with_its_branches(
    page: AsyncClient, user: User, socket: Socket
) -> None:
    first, _ = await socket.ask("one")
    await socket.ask("one, edited", conversation=first["conversation"], parent=None, branch=True)
    await socket.ask("a secret", temporary=True)
    await page.put(f"/api/messages/{first['answer']}/feedback", {"verdict": "up"}, content_type=KIND)
    change = {"tags": ["työ", "旅行"], "parameters": {"temperature": 0.5}, "system_prompt": HOSTILE}
    await page.patch(f"/api/conversations/{first['conversation']}", change, content_type=KIND)
    await imported(page, file_of(talk(turn(1, None, "user", HOSTILE), title=HOSTILE)))
    before = await exported(page)
    assert b"a secret" not in before
    value = json.loads(before)
    assert [len(each["messages"]) for each in value["conversations"]] == [1, 4]
    assert [each["model"] for each in value["conversations"]] == ["", "scripted"]
    await run_in_db(Conversation.objects.all().delete)
    answer = await imported(page, value)
    assert (answer.status_code, answer.json()["num_messages"]) == (201, 5)
    assert await exported(page) == before
    conversation = answer.json()["conversations"][1]
    again = await exported(page, f"/api/conversations/{conversation}/export")
    assert json.loads(again)["conversations"] == value["conversations"][1:]
    shown = (await page.get(f"/api/conversations/{conversation}/messages")).json()["items"]
    assert shown[0]["text"] == "one, edited"
    assert [len(message["variants"]) for message in shown] == [2, 1]
    _, done = await socket.ask("and on", conversation=conversation, parent=shown[-1]["id"])
    assert done["state"] == "complete"


async def test_markdown_shows_the_branch_that_is_shown(page: AsyncClient, socket: Socket) -> None:
    first, _ = await socket.ask("one")
    await socket.ask("two", conversation=first["conversation"], parent=None, branch=True)
    text = (await exported(page, form="markdown")).decode()
    assert text.startswith("# one\n")
    assert "## You\n\ntwo\n\n## Assistant, scripted\n\nYou said: two (1 word)\n" in text
    assert "You said: one" not in text


BAD_FILES = {
    "no object": ("x", "Expected `object`"),
    "another format": ({"format": "x"}, "$.format"),
    "a later version": ({"format": "rill-conversations", "version": 2, "conversations": []}, "$.version"),
    "no title": (file_of({"messages": []}), "$.conversations[0]"),
    "a number as text": (file_of(talk(turn(1, None, "user", 5))), "$.conversations[0].messages[0].text"),  # type: ignore[arg-type]
    "a role of ours": (file_of(talk(turn(1, None, "system"))), "$.conversations[0].messages[0].role"),
    "a live state": (file_of(talk(turn(1, None, "assistant", state="running"))), "messages[0].state"),
    "an owner": (file_of(talk(owner=1)), "owner"),
    "a parent that is not there": (
        file_of(talk(), talk(turn(1, 7, "user"))),
        "conversations[1].messages[0].parent",
    ),
    "its own parent": (file_of(talk(turn(1, 1, "user"))), "conversations[0].messages[0].parent"),
    "a number twice": (file_of(talk(turn(1, None, "user"), turn(1, None, "user"))), "messages[1].number"),
    "two questions in a row": (
        file_of(talk(turn(1, None, "user"), turn(2, 1, "user"))),
        "conversations[0].messages[1].parent",
    ),
    "a question that failed": (file_of(talk(turn(1, None, "user", state="failed"))), "messages[0]"),
    "an active question": (file_of(talk(turn(1, None, "user"), active=1)), "conversations[0].active"),
    "an early year": (file_of(talk(created_at="0001-01-01T00:00:00+23:59")), "conversations[0].created_at"),
    "no time zone": (file_of(talk(created_at="2026-01-01T00:00:00")), "created_at"),
    "too hot": (file_of(talk(parameters={"temperature": 9})), "conversations[0].parameters.temperature"),
    "a text for a number": (file_of(talk(parameters={"top_k": "5"})), "parameters.top_k"),
    "a tag twice": (file_of(talk(tags=["a", "a"])), "conversations[0].tags"),
    "a NUL": (file_of(talk(turn(1, None, "user", "a\x00b"))), "NUL"),
    "a mapping that is none": ([{"mapping": 5}], "$[0].mapping"),
    "a cycle": (
        [{"mapping": {"a": {"parent": "b"}, "b": {"parent": "a"}}}],
        "$[0].mapping",
    ),
}


async def test_a_bad_file_is_refused_whole_with_where_and_why(page: AsyncClient) -> None:
    good = talk(turn(1, None, "user"), turn(2, 1, "assistant"))
    for name, (value, where) in BAD_FILES.items():
        if isinstance(value, dict) and "conversations" in value:
            value["conversations"].append(good)
        answer = await imported(page, value)
        assert answer.status_code == 400, name
        assert where in answer.json()["error"]["message"], name
    assert await counts() == [0, 0, 0, 0]


async def test_a_file_that_is_too_large_is_refused(page: AsyncClient, config: Any) -> None:
    config(max_import_bytes=1000)
    answer = await imported(page, file_of(talk(turn(1, None, "user", "x" * 1000))))
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "body_too_large")


def node(parent: str | None, role: str = "", *parts: Any, **more: Any) -> dict[str, Any]:
    message = {"author": {"role": role}, "content": {"content_type": "text", "parts": list(parts)}} | more
    return {"id": str(uuid4()), "parent": parent, "children": [], "message": message if role else None}


CHAT = {
    "title": "Trip\nto Rome",
    "create_time": 1_700_000_000.5,
    "update_time": 1_700_000_100,
    "current_node": "a2",
    "conversation_id": "x",
    "mapping": {
        "root": node(None),
        "sys": node("root", "system", "hidden", metadata={"is_visually_hidden_from_conversation": True}),
        "q1": node("sys", "user", "Where to?", create_time=1_700_000_001.0),
        "a1": node("q1", "assistant", "Rome.", metadata={"model_slug": "gpt-x"}),
        "tool1": node("a1", "assistant", "search(rome)", recipient="browser"),
        "tool2": node("tool1", "tool", "results"),
        "a2": node("tool2", "assistant", "It is sunny.", {"content_type": "image_asset_pointer"}),
        "q2": node("a2", "user", "And then?"),
        "q2b": node("a2", "user", "And when?"),
        "a3": node("q2b", "assistant", HOSTILE),
        "a4": node("q1", "assistant", "Paris."),
    },
}


async def test_a_chatgpt_export_keeps_its_branches_and_only_what_was_said(page: AsyncClient) -> None:
    answer = await imported(page, [CHAT, {"title": None, "mapping": {}}])
    assert answer.status_code == 201, answer.content
    value = json.loads(await exported(page))["conversations"]
    (empty, chat) = sorted(value, key=lambda each: len(each["messages"]))
    assert empty["messages"] == []
    assert (chat["title"], chat["active"]) == ("Trip to Rome", 2)
    messages = {message["number"]: message for message in chat["messages"]}
    seen = {
        (message["text"], messages[message["parent"]]["text"] if message["parent"] else None)
        for message in messages.values()
    }
    assert seen == {
        ("Where to?", None),
        ("Rome.\n\nIt is sunny.", "Where to?"),
        ("And then?", "Rome.\n\nIt is sunny."),
        ("And when?", "Rome.\n\nIt is sunny."),
        (HOSTILE.strip(), "And when?"),
        ("Paris.", "Where to?"),
    }
    assert messages[2]["made"]["model"] == "gpt-x"


async def test_a_fork_within_an_answer_gives_each_branch_the_whole_of_it(page: AsyncClient) -> None:
    mapping = {
        "q": node(None, "user", "q"),
        "a": node("q", "assistant", "first"),
        "next": node("a", "user", "next"),
        "more": node("a", "assistant", "second"),
    }
    await imported(page, [{"mapping": mapping}])
    texts = [m["text"] for m in json.loads(await exported(page))["conversations"][0]["messages"]]
    assert sorted(texts) == ["first", "first\n\nsecond", "next", "q"]


async def test_deep_and_wide_mappings_end_soon(page: AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """A chain of 4,000 parts that each end an answer would be written as 48 million characters."""
    deep = {str(n): node(str(n - 1), "assistant", "part") for n in range(4000)}
    fork = deep | {f"q{n}": node(str(n), "user", "next") for n in range(4000)}
    assert (await imported(page, [{"mapping": deep}])).status_code == 201
    refused = await imported(page, [{"mapping": fork}])
    assert (refused.status_code, "too long" in refused.json()["error"]["message"]) == (400, True)
    monkeypatch.setattr(chatgpt, "MAX_FILE_CHARS", 100_000)  # 50 million
    refused = await imported(page, [{"mapping": deep}] * 5)
    assert (refused.status_code, "too long - at `$[4]`" in refused.json()["error"]["message"]) == (400, True)
    assert await run_in_db(Message.objects.count) == 1


@pytest.mark.parametrize("path", ["/api/conversations/{id}/export", "/api/conversations/{id}"])
async def test_files_of_others_do_not_exist(page: AsyncClient, other_user: User, path: str) -> None:
    foreign = await run_in_db(Conversation.objects.create, owner=other_user, title="private")
    answers = [await page.get(path.format(id=pk)) for pk in (foreign.pk, uuid4())]
    assert [answer.status_code for answer in answers] == [404, 404]
    assert answers[0].content == answers[1].content
    assert b"private" not in await exported(page)


async def test_the_named_ones_leave_together_and_nobody_elses(
    page: AsyncClient, user: User, other_user: User
) -> None:
    def make() -> list[Conversation]:
        owners = (user, user, user, other_user)
        return [Conversation.objects.create(owner=owner, title=f"no {n}") for n, owner in enumerate(owners)]

    rows = await run_in_db(make)
    ids = [str(row.pk) for row in rows if row.title != "no 1"]
    answer = await page.post("/api/conversations/export", {"ids": ids}, content_type=KIND)
    told = json.loads(await read(answer))["conversations"]
    assert [talk["title"] for talk in told] == ["no 0", "no 2"]
    assert (await page.post("/api/conversations/export", {"ids": []}, content_type=KIND)).status_code == 400


async def test_only_those_that_are_there_are_read_and_each_once(
    page: AsyncClient, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten thousand ids that name nothing, or one long conversation, must not keep the site busy."""
    titles = ("late", "early")
    rows = [
        await run_in_db(lambda title=title: Conversation.objects.create(owner=user, title=title))
        for title in titles
    ]
    read_ids: list[UUID] = []
    load = transfer_rows.load
    monkeypatch.setattr(transfer_rows, "load", lambda user_id, pk: read_ids.append(pk) or load(user_id, pk))
    ids = [str(uuid4()), str(rows[1].pk), str(rows[0].pk), str(rows[1].pk)]
    answer = await page.post("/api/conversations/export", {"ids": ids}, content_type=KIND)
    told = json.loads(await read(answer))["conversations"]
    assert [talk["title"] for talk in told] == ["early", "late"]
    assert read_ids == [rows[1].pk, rows[0].pk]


async def test_a_file_of_one_has_its_title_for_a_name(page: AsyncClient, user: User) -> None:
    names = {}
    for title in ("Rivers: a/b", "河流", "..", "", 'a"\r\nX: y'):
        row = await run_in_db(lambda title=title: Conversation.objects.create(owner=user, title=title))
        names[title] = (await page.get(f"/api/conversations/{row.pk}/export"))["Content-Disposition"]
    assert names["Rivers: a/b"] == 'attachment; filename="Rivers  a b.json"'
    assert "filename*=utf-8''%E6%B2%B3%E6%B5%81.json" in names["河流"]
    assert names[".."] == names[""] == 'attachment; filename="conversations.json"'
    assert "\n" not in names['a"\r\nX: y']
