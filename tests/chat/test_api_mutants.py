"""What the chat's API promises, and for each promise a way to break it that the same check notices."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.test import AsyncClient

from chatsite.accounts.models import User
from chatsite.chat import branches, bulk, library, listing, store
from chatsite.chat.live import LiveAnswer, Snapshot
from chatsite.chat.models import Conversation, Message
from chatsite.chat.terms import found_in
from chatsite.chat.transfer import reading
from chatsite.db import run_in_db
from tests.chat.api_client import KIND, events_of, read

URL = "/api/conversations"
Check = Callable[["World"], Awaitable[None]]


class World:
    """Two people with a conversation each; the clients are their browsers."""

    def __init__(self, page: AsyncClient, stranger: AsyncClient, ids: list[UUID], leaf: UUID) -> None:
        self.page, self.stranger, self.leaf = page, stranger, leaf
        self.mine, self.theirs = ids


@pytest.fixture
async def world(page: AsyncClient, stranger: AsyncClient, user: User, other_user: User) -> World:
    def make() -> tuple[list[UUID], UUID]:
        ids = []
        for owner in (user, other_user):
            row = Conversation.objects.create(owner=owner, title="rivers")
            question = Message.objects.create(conversation=row, role="user", text=f"rivers of {owner}")
            leaf = Message.objects.create(conversation=row, role="assistant", text="x", parent=question)
            Conversation.objects.filter(pk=row.pk).update(active_leaf=leaf)
            ids.append(row.pk)
        return ids, leaf.pk

    return World(page, stranger, *await run_in_db(make))


async def nobody_finds_others(world: World) -> None:
    found = (await world.page.get(URL, {"q": "rivers"})).json()["items"]
    assert [row["id"] for row in found] == [str(world.mine)]


async def nobody_reads_others(world: World) -> None:
    for path in (f"{URL}/{world.theirs}", f"{URL}/{world.theirs}/messages", f"{URL}/{world.theirs}/export"):
        assert (await world.page.get(path)).status_code == 404


async def set_up_twice_is_made_once_and_for_oneself(world: World) -> None:
    first = {"client_message_id": str(uuid4())}
    clients = (world.page, world.page, world.stranger)
    made = [(await client.post(URL, first, content_type=KIND)).json() for client in clients]
    mine, again, theirs = (row.get("id") for row in made)
    assert mine == again != theirs
    assert theirs is not None


async def many_are_changed_together_or_not(world: World) -> None:
    body = {"action": "archive", "ids": [str(world.mine), str(world.theirs)]}
    answer = await world.page.post(f"{URL}/bulk", body, content_type=KIND)
    archived = await run_in_db(Conversation.objects.filter(is_archived=True).count)
    assert (answer.status_code, archived) == (404, 0)


async def a_leaf_is_of_this_tree(world: World) -> None:
    url = f"{URL}/{world.mine}"
    answer = await world.page.patch(url, {"active_leaf": str(world.leaf)}, content_type=KIND)
    assert answer.status_code == 400


async def pages_have_no_hole(world: World) -> None:
    url, seen, query = f"{URL}/{world.mine}/messages", 0, {"limit": 1}
    while query:
        shown = (await world.page.get(url, query)).json()
        seen += len(shown["items"])
        query = {"limit": 1, "before": shown["before"]} if shown["before"] else {}
    assert seen == 2


async def sent_twice_is_asked_once(world: World) -> None:
    body = {"client_message_id": str(uuid4()), "text": str(uuid4())}
    for _ in range(2):
        await world.page.post(f"{URL}/{world.mine}/messages?wait=60", body, content_type=KIND)
    assert await run_in_db(Message.objects.filter(text=body["text"]).count) == 1


async def what_is_missing_fits(world: World) -> None:
    body = {"client_message_id": str(uuid4()), "text": "a question"}
    answer = await world.page.post(f"{URL}/{world.mine}/messages?wait=60", body, content_type=KIND)
    url = answer.json()["events"]
    whole = events_of(await read(await world.page.get(url)))
    rest = events_of(await read(await world.page.get(url, {"after": whole[0]["seq"]})))
    text = whole[0]["text"] + "".join(frame["text"] for frame in rest if frame["type"] == "delta")
    assert text == answer.json()["answer"]["text"]


async def a_file_is_taken_whole_or_not(world: World) -> None:
    before = await run_in_db(Conversation.objects.count)
    moment = "2026-01-01T00:00:00Z"
    turn = {"number": 1, "parent": None, "role": "user", "text": "x", "created_at": moment}
    talk = {"title": "t", "created_at": moment, "updated_at": moment, "messages": [turn]}
    bad = talk | {"messages": [turn | {"parent": 5}]}
    file = {"format": "rill-conversations", "version": 1, "conversations": [talk, bad]}
    answer = await world.page.post(f"{URL}/import", file, content_type=KIND)
    assert (answer.status_code, await run_in_db(Conversation.objects.count)) == (400, before)


def unowned(user_id: int, conversation: UUID) -> Conversation:
    return Conversation.objects.get(pk=conversation)


def listed_of_all(user_id: int, wanted: Any, cursor: str) -> listing.Page:
    found = Conversation.objects.filter(*found_in("title", wanted.query))
    return listing.Page(listing._lines(user_id, found), None, None)


def changed_as_far_as_owned(user_id: int, ids: Any) -> list[Conversation]:
    return list(Conversation.objects.filter(pk__in=ids, owner=user_id))


def cut_too_early(self: LiveAnswer, after: int) -> Snapshot:
    return Snapshot("", after, self.state, 0)


def window_that_overlaps(line: Any, place: Any, limit: int) -> tuple[int, int]:
    return (0, 1) if place else (max(0, len(line) - limit), len(line) - 1)


def another_place(user_id: int, question: Any) -> tuple[Conversation, None]:
    return Conversation.objects.create(owner_id=user_id), None


def any_leaf(row: Conversation, message: UUID) -> UUID:
    return message


# Those that spoil what the others look at come last.
MUTANTS: list[tuple[Check, Any, str, Any]] = [
    (nobody_finds_others, listing, "conversations", listed_of_all),
    (nobody_reads_others, branches, "owned", unowned),
    (nobody_reads_others, library, "owned", unowned),
    (pages_have_no_hole, branches, "_window", window_that_overlaps),
    (what_is_missing_fits, LiveAnswer, "cut", cut_too_early),
    (a_file_is_taken_whole_or_not, reading, "_check_turn", lambda *_: None),
    (sent_twice_is_asked_once, store, "_place_of", another_place),
    (set_up_twice_is_made_once_and_for_oneself, library, "begun_by", lambda *_: uuid4()),
    (set_up_twice_is_made_once_and_for_oneself, library, "begun_by", lambda _, message: message),
    (many_are_changed_together_or_not, bulk, "all_locked", changed_as_far_as_owned),
    (a_leaf_is_of_this_tree, library, "_leaf", any_leaf),
]


async def test_each_promise_is_kept_and_its_mutant_noticed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for check in dict.fromkeys(check for check, *_ in MUTANTS):
        await check(world)
    for check, where, name, instead in MUTANTS:
        with monkeypatch.context() as patched:
            patched.setattr(where, name, instead)
            try:
                await check(world)
            except AssertionError:
                continue
        pytest.fail(f"{check.__name__} did not notice another {name}")


def test_the_search_can_be_taken_back_and_built_again(transactional_db: None) -> None:
    """And is built beside running writes: no lock that a big table would be held by."""
    latest = MigrationExecutor(connection).loader.graph.leaf_nodes("chat")
    migration = MigrationExecutor(connection).loader.get_migration("chat", "0007_search")
    assert not migration.atomic
    try:
        MigrationExecutor(connection).migrate([("chat", "0006_remove_generation_reserved_tokens")])
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_proc WHERE proname LIKE 'chat_search%'")
            assert cursor.fetchone() == (0,)
    finally:
        MigrationExecutor(connection).migrate(latest)
    assert listing.conversations(0, listing.Wanted("x"), "").items == []
