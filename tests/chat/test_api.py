"""The page's JSON API and the page itself: what is one's own is shown, changed and erased; what is not is a 404."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID, uuid4

import pytest
from asgiref.sync import sync_to_async
from django.db import OperationalError, connection, connections
from django.test import AsyncClient

from chatsite.accounts.models import User
from chatsite.chat.models import Conversation, Generation, Message
from chatsite.db import run_in_db
from inference.testing import script_text
from tests.chat.api_client import KIND, events_of, read
from tests.chat.conftest import open_socket
from tests.chat.socket import Socket


async def test_the_page_opens_with_what_its_scripts_need(
    page: AsyncClient, user: User, socket: Socket
) -> None:
    accepted, _ = await socket.ask("hello")
    for url in ("/", f"/c/{accepted['conversation']}"):
        answer = await page.get(url)
        assert answer.status_code == 200
        boot = answer.context["boot"]
        assert boot["user"] == {
            "name": "ada",
            "is_guest": False,
            "is_staff": False,
            "has_password": user.has_usable_password(),
        }
        assert [model["name"] for model in boot["models"]] == ["scripted"]
    assert boot["conversation"] == accepted["conversation"]


async def test_without_a_session_the_page_leads_to_the_door(page: AsyncClient) -> None:
    answer = await AsyncClient().get("/")
    assert (answer.status_code, answer["Location"]) == (302, "/signin")
    assert (await AsyncClient().get("/api/conversations")).status_code == 401


async def test_the_list_is_paged_and_searched(page: AsyncClient, user: User, socket: Socket) -> None:
    await socket.ask("a question about rivers", temporary=True)
    accepted, _ = await socket.ask("a question about mountains")

    def more() -> None:
        for number in range(60):
            Conversation.objects.create(owner=user, title=f"number {number}", is_pinned=number == 0)

    await run_in_db(more)
    seen: list[str] = []
    cursor = ""
    while True:
        listed = (await page.get("/api/conversations", {"cursor": cursor})).json()
        seen += [item["title"] for item in listed["items"]]
        cursor = listed["next"]
        if cursor is None:
            break
    assert seen[0] == "number 0"
    assert len(seen) == len(set(seen)) == 61
    assert "a question about rivers" not in seen
    found = (await page.get("/api/conversations", {"q": "You said: a question about MOUNTAINS"})).json()
    assert [item["id"] for item in found["items"]] == [accepted["conversation"]]
    assert (await page.get("/api/conversations", {"q": "100%_\\"})).json()["items"] == []


@pytest.mark.parametrize(
    "query", ["?q=%00", "?cursor=x", "?cursor=1_2_3", "?q=" + "x" * 300, "?archived=maybe"]
)
async def test_a_bad_query_is_a_clear_error(page: AsyncClient, query: str) -> None:
    answer = await page.get(f"/api/conversations{query}")
    assert answer.status_code in (400, 413)
    assert answer.json()["error"]["message"]


async def test_a_conversation_shows_all_branches_and_how_answers_were_made(
    page: AsyncClient, socket: Socket
) -> None:
    first, _ = await socket.ask("one")
    await socket.ask("two", conversation=first["conversation"], parent=None, branch=True)
    url = f"/api/conversations/{first['conversation']}"
    shown = (await page.get(url)).json()
    messages = (await page.get(f"{url}/messages?branch=all")).json()["items"]
    assert shown["num_messages"] == 4
    assert [message["role"] for message in messages] == ["user", "assistant"] * 2
    assert [message["parent"] for message in messages][::2] == [None, None]
    made = messages[1]["generation"]
    assert (made["id"], made["state"], made["model"]) == (first["generation"], "complete", "scripted")
    assert shown["active_leaf"] == messages[3]["id"]


async def test_what_is_given_changes_and_nothing_else(page: AsyncClient, socket: Socket) -> None:
    accepted, _ = await socket.ask("hello")
    url = f"/api/conversations/{accepted['conversation']}"
    change = {
        "title": "Renamed",
        "is_pinned": True,
        "system_prompt": "Be brief.",
        "parameters": {"temperature": 0.5},
    }
    answer = await page.patch(url, change, content_type=KIND)
    assert (answer.status_code, answer.json()["title"]) == (200, "Renamed")
    await page.patch(url, {"is_archived": True}, content_type=KIND)
    row = await run_in_db(Conversation.objects.get, pk=accepted["conversation"])
    assert (row.title, row.is_pinned, row.is_archived, row.parameters) == (
        "Renamed",
        True,
        True,
        {"temperature": 0.5},
    )
    _, done = await socket.ask("again", conversation=accepted["conversation"], parent=accepted["answer"])
    assert done["state"] == "complete"
    for bad in (
        {"title": "x" * 201},
        {"owner": 1},
        {"parameters": {"temperature": 9}},
        {"active_leaf": str(uuid4())},
    ):
        assert (await page.patch(url, bad, content_type=KIND)).status_code == 400
    assert (await page.patch(url, '{"title": "a\\u0000b"}', content_type=KIND)).status_code == 400
    assert (await page.patch(url, "{bad", content_type=KIND)).status_code == 400


async def test_erasing_removes_everything_and_ends_what_runs(page: AsyncClient, socket: Socket) -> None:
    accepted = await socket.send(script_text(tokens=3000, delay_ms=10))
    await socket.until("delta")
    assert (await page.delete(f"/api/conversations/{accepted['conversation']}")).status_code == 202
    counts = [await run_in_db(model.objects.count) for model in (Conversation, Message, Generation)]
    assert counts == [0, 0, 0]
    _, done = await socket.ask("the socket lives")
    assert done["state"] == "complete"


async def test_somebody_elses_things_do_not_exist(
    page: AsyncClient, stranger: AsyncClient, socket: Socket
) -> None:
    accepted, _ = await socket.ask("private")
    for ids in (accepted, {name: str(uuid4()) for name in ("conversation", "answer", "generation")}):
        conversation = f"/api/conversations/{ids['conversation']}"
        answers = [
            await stranger.get(f"/c/{ids['conversation']}"),
            await stranger.get(conversation),
            await stranger.patch(conversation, {"title": "mine"}, content_type=KIND),
            await stranger.delete(conversation),
            await stranger.get(f"/api/messages/{ids['answer']}"),
            await stranger.get(f"/api/generations/{ids['generation']}"),
            await stranger.get(f"/api/generations/{ids['generation']}/events"),
            await stranger.post(f"/api/generations/{ids['generation']}/cancel"),
        ]
        assert [answer.status_code for answer in answers] == [404] * 8
    assert (await page.get(f"/api/conversations/{accepted['conversation']}")).json()["title"] == "private"


async def test_an_answer_can_be_polled_followed_and_cancelled(
    page: AsyncClient, user: User, socket: Socket
) -> None:
    accepted = await socket.send(script_text(tokens=3000, delay_ms=10))
    await socket.until("delta")
    url = f"/api/generations/{accepted['generation']}"
    polled = (await page.get(f"/api/messages/{accepted['answer']}")).json()
    assert polled["state"] == "running"
    assert polled["text"]
    assert (await page.get(f"/api/messages/{accepted['answer']}", {"after": 10_000})).json()["text"] is None
    cancelled = await page.post(f"{url}/cancel")
    assert cancelled.status_code == 200
    done = await socket.until("done")
    assert done["state"] == "stopped"
    assert (await page.get(url)).json()["state"] == "stopped"


async def test_an_event_stream_gives_the_text_so_far_and_the_rest(page: AsyncClient, socket: Socket) -> None:
    accepted = await socket.send(script_text(tokens=40, delay_ms=10))
    await socket.until("delta")
    answer = await page.get(f"/api/generations/{accepted['generation']}/events")
    assert answer["Content-Type"].startswith("text/event-stream")
    assert answer["X-Accel-Buffering"] == "no"
    frames = events_of(await read(answer))
    text = "".join(frame["text"] for frame in frames if frame["type"] in ("snapshot", "delta"))
    done = await socket.until("done")
    assert text == socket.text_of(done)
    assert [frames[0]["type"], frames[-1]["type"]] == ["snapshot", "done"]
    finished = await page.get(f"/api/generations/{accepted['generation']}/events")
    again = events_of(await read(finished))
    assert [frame["type"] for frame in again] == ["snapshot", "done"]
    assert again[0]["text"] == text


async def test_forgotten_temporary_chats_are_erased(engine: Any, user: User) -> None:
    from datetime import timedelta

    from django.utils import timezone

    from chatsite.chat.tasks import _erase

    socket = await open_socket(user)
    old, _ = await socket.ask("old", temporary=True)
    new, _ = await socket.ask("new", temporary=True)
    await socket.close()
    past = timezone.now() - timedelta(hours=25)
    await run_in_db(Conversation.objects.filter(pk=old["conversation"]).update, updated_at=past)
    assert await _erase() == 1
    left = await run_in_db(list, Conversation.objects.values_list("pk", flat=True))
    assert left == [UUID(new["conversation"])]


@pytest.mark.parametrize("url", ["/", "/api/conversations"])
async def test_a_request_gives_its_connection_back_before_it_answers(page: AsyncClient, url: str) -> None:
    """A connection that stays with its request is missing for as long as an answer is streamed."""
    await sync_to_async(connections.close_all)()
    assert (await page.get(url)).status_code == 200
    assert await sync_to_async(lambda: connection.connection is None)()


@pytest.mark.parametrize(
    "moment", ["2024-01-01T00:00:00+01:00:00.000001", "0001-01-01T00:00:00+23:59", "2024-01-01T00:00:00"]
)
async def test_an_odd_cursor_is_no_error_of_the_server(page: AsyncClient, moment: str) -> None:
    answer = await page.get("/api/conversations", {"cursor": f"0_{moment}_{uuid4()}"})
    assert answer.status_code in (200, 400)


async def test_a_question_is_no_leaf(page: AsyncClient, socket: Socket) -> None:
    accepted, _ = await socket.ask("hello")
    url = f"/api/conversations/{accepted['conversation']}"
    answer = await page.patch(url, json.dumps({"active_leaf": accepted["user_message"]}), content_type=KIND)
    assert answer.status_code == 400


@pytest.mark.parametrize("door", ["/api/conversations", "/v1/models"])
async def test_a_database_that_is_away_is_said_to_come_back(
    page: AsyncClient, monkeypatch: pytest.MonkeyPatch, door: str
) -> None:
    def fail(*args: Any, **kwargs: Any) -> None:
        raise OperationalError("the server closed the connection")

    monkeypatch.setattr("chatsite.chat.listing.conversations", fail)
    monkeypatch.setattr("chatsite.accounts.keys.authenticate", fail)
    answer = await page.get(door)
    assert (answer.status_code, answer["Retry-After"]) == (503, "2")
    assert answer.json()["error"]["code"] == "storage_unavailable"
