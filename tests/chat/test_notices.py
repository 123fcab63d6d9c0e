"""What other tabs hear of a person's conversations: what happened, in which one, and nobody else's."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import msgspec
import pytest
import pytest_asyncio
from django.test import AsyncClient
from django.utils import timezone

from chatsite.accounts.callers import caller_of_user
from chatsite.accounts.models import User
from chatsite.chat import listing, notices, store, telling
from chatsite.chat.adoption import reap
from chatsite.chat.models import Conversation, Generation
from chatsite.chat.notices import NOTICE, Changed, Kind, Listener, Noticeboard, board
from chatsite.db import run_in_db
from tests.chat.api_client import KIND
from tests.chat.conftest import open_socket
from tests.chat.socket import Socket

URL = "/api/conversations"


@pytest_asyncio.fixture(loop_scope="package")
async def second(socket: Socket, user: User) -> AsyncIterator[Socket]:
    """Another tab of the same person, which watches nothing."""
    tab = await open_socket(user)
    yield tab
    await tab.close()


@pytest_asyncio.fixture(loop_scope="package")
async def foreign(socket: Socket, other_user: User) -> AsyncIterator[Socket]:
    """A tab of somebody else."""
    tab = await open_socket(other_user)
    yield tab
    await tab.close()


async def said_until_now(tab: Socket) -> list[dict[str, Any]]:
    """The frames that came before the answer to a ping."""
    before = len(tab.seen)
    await tab.say("ping")
    await tab.until("pong")
    return tab.seen[before:-1]


async def test_a_second_tab_hears_of_a_question_and_of_its_answer(socket: Socket, second: Socket) -> None:
    accepted, _ = await socket.ask("Which river is the longest?")
    asked = await second.until("changed", kind="asked")
    answered = await second.until("changed", kind="answered")
    assert asked["conversation"] == answered["conversation"] == accepted["conversation"]
    assert asked["item"]["title"] == "Which river is the longest?"
    assert answered["item"]["is_answering"] is False
    kinds = [frame.get("kind") for frame in await said_until_now(socket)]
    assert "asked" not in kinds, "who asked knows"


async def test_the_asking_tab_hears_of_the_end_too(socket: Socket) -> None:
    """It may show another chat by then."""
    accepted, _ = await socket.ask("hello")
    answered = await socket.until("changed", kind="answered")
    assert answered["conversation"] == accepted["conversation"]


async def test_a_running_answer_is_told_as_running(socket: Socket, second: Socket) -> None:
    accepted = await socket.send('/script {"tokens": 300, "delay_ms": 20}')
    asked = await second.until("changed", kind="asked")
    assert asked["item"]["is_answering"] is True
    await socket.say("stop", generation=accepted["generation"])
    answered = await second.until("changed", kind="answered")
    assert answered["item"]["is_answering"] is False


@pytest_asyncio.fixture(loop_scope="package")
async def left(socket: Socket, user: User) -> tuple[UUID, UUID]:
    """A conversation and its answer, which no process makes."""
    question = store.Question(uuid4(), "Who goes on with this?")
    stored = await run_in_db(store.store_question, caller_of_user(user), question)
    return stored.conversation, stored.generation


async def test_an_answer_that_the_reaper_ends_runs_in_no_list(
    socket: Socket, foreign: Socket, left: tuple[UUID, UUID]
) -> None:
    conversation, generation = left
    past = timezone.now() - timedelta(seconds=60)
    await run_in_db(Generation.objects.filter(pk=generation).update, deadline_at=past)
    assert await reap() == 1
    answered = await socket.until("changed", kind="answered")
    assert (answered["conversation"], answered["item"]["is_answering"]) == (str(conversation), False)
    assert await said_until_now(foreign) == []


async def test_an_answer_that_is_stopped_after_its_process_died_runs_in_no_list(
    socket: Socket, second: Socket, left: tuple[UUID, UUID]
) -> None:
    conversation, generation = left
    await socket.say("stop", generation=str(generation))
    answered = await second.until("changed", kind="answered")
    assert (answered["conversation"], answered["item"]["is_answering"]) == (str(conversation), False)


async def test_tabs_that_hear_of_a_change_at_once_share_one_look_into_the_rows(
    socket: Socket, second: Socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = []

    def listed(user: int, conversations: Any) -> Any:
        looks.append(conversations)
        return listing.listed(user, conversations)

    monkeypatch.setattr(telling, "listed", listed)
    await socket.ask("hello")
    for tab in (socket, second):
        await tab.until("changed", kind="answered")
    assert len(looks) == 2, "the question, told to the second tab, and the answer, told to both"


async def test_what_is_done_to_chats_elsewhere_is_heard(
    socket: Socket, second: Socket, page: AsyncClient
) -> None:
    accepted, _ = await socket.ask("hello")
    url = f"{URL}/{accepted['conversation']}"
    await page.patch(url, {"title": "Rivers", "tags": ["work"]}, content_type=KIND)
    changed = await second.until("changed", kind="changed")
    assert (changed["item"]["title"], changed["item"]["tags"]) == ("Rivers", ["work"])
    bulk = {"action": "archive", "ids": [accepted["conversation"]]}
    await page.post(f"{URL}/bulk", bulk, content_type=KIND)
    assert (await second.until("changed", kind="changed"))["item"]["is_archived"] is True
    await page.delete(url)
    erased = await second.until("changed", kind="erased")
    assert (erased["conversation"], erased["item"]) == (accepted["conversation"], None)


async def test_an_import_tells_to_load_the_list_anew(second: Socket, page: AsyncClient) -> None:
    file = {"format": "rill-conversations", "version": 1, "conversations": []}
    assert (await page.post(f"{URL}/import", json.dumps(file), content_type=KIND)).status_code == 201
    assert (await second.until("changed", kind="many"))["conversation"] is None


async def test_temporary_chats_are_in_no_list(socket: Socket, second: Socket) -> None:
    await socket.ask("hush", temporary=True)
    assert [frame for frame in await said_until_now(second) if frame["type"] == "changed"] == []


async def test_a_line_of_a_frame_is_a_line_of_the_api(
    socket: Socket, second: Socket, page: AsyncClient
) -> None:
    await socket.ask("hello")
    item = (await second.until("changed", kind="answered"))["item"]
    (line,) = (await page.get(URL)).json()["items"]
    assert set(item) == set(line)


class Ear:
    """A tab that only listens."""

    def __init__(self) -> None:
        self.heard: list[Any] = []

    def on_started(self, started: Any) -> None:
        self.heard.append(started)

    def on_changed(self, changed: Any) -> None:
        self.heard.append(changed)


async def nobody_hears_of_others(socket: Socket, foreign: Socket, page: AsyncClient) -> None:
    accepted, _ = await socket.ask("a secret of mine")
    await page.patch(f"{URL}/{accepted['conversation']}", {"title": "still a secret"}, content_type=KIND)
    await page.delete(f"{URL}/{accepted['conversation']}")
    await socket.until("changed", kind="erased")
    assert [frame for frame in await said_until_now(foreign) if frame["type"] == "changed"] == []


async def test_a_foreign_user_never_hears_it(socket: Socket, foreign: Socket, page: AsyncClient) -> None:
    await nobody_hears_of_others(socket, foreign, page)


async def test_a_board_that_tells_everybody_would_be_noticed(
    socket: Socket, foreign: Socket, page: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def everybody(self: Noticeboard, notice: Any) -> Iterable[Listener]:
        return [tab for tabs in self._tabs.values() for tab in tabs]

    monkeypatch.setattr(Noticeboard, "_ears_of", everybody)
    with pytest.raises(AssertionError):
        await nobody_hears_of_others(socket, foreign, page)


async def test_a_notice_of_the_wrong_person_tells_nothing_of_a_chat(socket: Socket, other_user: User) -> None:
    """The second line: whoever hears reads only what is its own."""
    accepted, _ = await socket.ask("mine")
    assert await run_in_db(listing.listed, other_user.pk, [UUID(accepted["conversation"])]) == []


async def test_another_process_is_heard_and_what_it_may_say_in_another_version_is_not(
    engine: Any, user: User
) -> None:
    own, ear, conversation = Noticeboard(), Ear(), uuid4()
    own.join(user.pk, ear)
    changed = Changed(user.pk, Kind.CHANGED, (conversation,))
    message = {"type": NOTICE, "process": "another", "notices": msgspec.to_builtins([changed])}
    own._hear(message | {"notices": [{"type": "of-next-year"}]})
    own._hear(message)
    own._hear(message | {"process": notices.lease_owner()})
    assert [(one.kind, list(one.conversations)) for one in ear.heard] == [(Kind.CHANGED, [conversation])]


async def test_a_closed_tab_is_forgotten(socket: Socket, user: User) -> None:
    tab = await open_socket(user)
    num = len(board._tabs[user.pk])
    await tab.close()
    assert len(board._tabs[user.pk]) == num - 1


async def test_search_says_how_many_it_found_and_tags_are_counted(page: AsyncClient, user: User) -> None:
    def make() -> None:
        for number in range(60):
            tags = ["work"] if number % 2 else ["work", "河流"]
            Conversation.objects.create(owner=user, title=f"河流 {number}", tags=tags)

    await run_in_db(make)
    first = (await page.get(URL, {"q": "河流"})).json()
    assert (first["num_found"], len(first["items"])) == (60, listing.PAGE)
    after = (await page.get(URL, {"q": "河流", "cursor": first["next"]})).json()
    assert (after["num_found"], len(after["items"])) == (None, 10)
    assert (await page.get(URL)).json()["num_found"] is None
    tags = (await page.get(f"{URL}/tags")).json()["items"]
    assert tags == [{"tag": "work", "num_conversations": 60}, {"tag": "河流", "num_conversations": 30}]
