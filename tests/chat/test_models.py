"""Conversations with several models: each remembers its own, and nothing of one reaches another."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Callable
from typing import Any
from uuid import UUID, uuid4

import pytest
import pytest_asyncio
from django.test import AsyncClient

from chatsite.accounts.callers import caller_of_user
from chatsite.accounts.models import UsageRecord, User
from chatsite.chat.live import LiveAnswer
from chatsite.chat.models import Conversation, Generation, Message
from chatsite.chat.record import Record
from chatsite.chat.warming import warm
from chatsite.db import run_in_db
from chatsite.engines import engines, served
from inference.client import EngineClient
from inference.testing import EngineProcess, script_text, scripted_engine
from inference.types import EngineInfo, GenerateRequest, Segment
from tests.chat.api_client import KIND
from tests.chat.conftest import open_socket
from tests.chat.socket import Frame, Socket

INFO = EngineInfo(
    "e", "m", "r", "ours", 100, 100, "fp32", "cpu", "", 0, 1, is_trial_model=False, default_temperature=0.0
)


@pytest_asyncio.fixture(scope="module", loop_scope="package")
async def processes() -> AsyncIterator[list[EngineProcess]]:
    async with (
        scripted_engine(environ={"ENGINE_MODEL_NAME": "river"}) as river,
        scripted_engine(environ={"ENGINE_MODEL_NAME": "stone"}) as stone,
    ):
        yield [river, stone]


@pytest.fixture
def engine(processes: list[EngineProcess], config: Callable[..., None], clean: None) -> list[EngineProcess]:
    """Two engines behind the site's processes, where the other tests of this folder have one."""
    addresses = ",".join(process.address for process in processes)
    config(engine_address=addresses, checkpoint_s=0.05, lease_s=0.5, cache_enabled=False)
    return processes


async def put(page: AsyncClient, conversation: str, **changes: Any) -> Any:
    return await page.patch(f"/api/conversations/{conversation}", changes, content_type=KIND)


async def told(page: AsyncClient, conversation: str) -> dict[str, Any]:
    return dict((await page.get(f"/api/conversations/{conversation}")).json())


def model_of(generation: str) -> str:
    return Generation.objects.get(pk=generation).model


async def model_in_engine(done: Frame) -> str:
    """Whose engine has the log of that answer."""
    having = []
    for engine in engines().every:
        try:
            await anext(engine.client.attach(done["generation"]))
        except Exception:
            continue
        having.append(engine.info.model if engine.info else "")
    (model,) = having
    return model


async def test_a_conversation_begins_with_the_first_model_and_remembers_it(
    socket: Socket, page: AsyncClient
) -> None:
    accepted, done = await socket.ask("hello")
    assert done["model"] == "river" == await model_in_engine(done)
    assert (await told(page, accepted["conversation"]))["model"] == "river"


async def test_the_chosen_model_answers_from_the_next_question_on(socket: Socket, page: AsyncClient) -> None:
    accepted, _ = await socket.ask("hello")
    conversation = accepted["conversation"]
    assert (await put(page, conversation, model="stone")).json()["model"] == "stone"
    second, done = await socket.ask("and now?", conversation=conversation, parent=accepted["answer"])
    assert done["model"] == "stone" == await model_in_engine(done)
    assert await run_in_db(model_of, done["generation"]) == "stone"
    booked = await run_in_db(UsageRecord.objects.get, generation=UUID(done["generation"]))
    assert booked.model == "stone"
    assert (await put(page, conversation, model="")).json()["model"] == ""
    _, third = await socket.ask("and now?", conversation=conversation, parent=second["answer"])
    assert third["model"] == "river"


async def test_a_new_conversation_may_name_its_model(socket: Socket, page: AsyncClient) -> None:
    name = str(uuid4())
    begun = {"client_message_id": name, "model": "stone"}
    made = await page.post("/api/conversations", begun, content_type=KIND)
    assert made.status_code == 201 and made.json()["model"] == "stone"
    accepted, done = await socket.ask("hello", client_message_id=name)
    assert accepted["conversation"] == made.json()["id"] and done["model"] == "stone"


async def test_a_model_that_nobody_serves_can_not_be_chosen(socket: Socket, page: AsyncClient) -> None:
    accepted, _ = await socket.ask("hello")
    refused = await put(page, accepted["conversation"], model="sand")
    assert refused.status_code == 400 and refused.json()["error"]["code"] == "invalid_request"
    made = await page.post("/api/conversations", {"model": "sand"}, content_type=KIND)
    assert made.status_code == 400
    assert (await told(page, accepted["conversation"]))["model"] == "river"


async def test_a_model_that_is_no_longer_served_gives_way_to_the_first(socket: Socket) -> None:
    accepted, _ = await socket.ask("hello")
    row = await run_in_db(Conversation.objects.get, pk=accepted["conversation"])
    row.model = "sand"
    await run_in_db(row.save)
    _, done = await socket.ask("still there?", conversation=row.pk, parent=accepted["answer"])
    assert (done["state"], done["model"]) == ("complete", "river")


async def test_an_engine_that_is_away_fails_its_own_conversations_only(
    user: User, config: Callable[..., None], processes: list[EngineProcess], clean: None
) -> None:
    addresses = f"{processes[0].address},unix:/nonexistent/engine.sock"
    config(engine_address=addresses, engine_call_timeout_s=0.5, cache_enabled=False)
    socket = await open_socket(user)
    accepted, done = await socket.ask("hello")
    assert (done["state"], done["model"]) == ("complete", "river")
    row = await run_in_db(Conversation.objects.get, pk=accepted["conversation"])
    row.model = "stone"
    await run_in_db(row.save)
    _, failed = await socket.ask("hello", conversation=row.pk, parent=accepted["answer"])
    assert (failed["state"], failed["error_code"]) == ("failed", "engine_unavailable")
    assert failed["is_retryable"] and failed["model"] == "stone"
    await socket.close()


async def test_an_answer_is_stopped_and_followed_wherever_it_is_made(
    socket: Socket, page: AsyncClient, user: User
) -> None:
    """By another process: what it knows of the answer is its id."""
    accepted, _ = await socket.ask("hello")
    await put(page, accepted["conversation"], model="stone")
    long = script_text(text="word ", tokens=1000, delay_ms=20)
    begun = await socket.send(long, conversation=accepted["conversation"], parent=accepted["answer"])
    await socket.until("delta")
    follower = engines().attach(begun["generation"])
    assert (await anext(follower)) is not None
    await follower.aclose()
    assert await engines().cancel(begun["generation"])
    assert (await socket.until("done"))["state"] == "stopped"


async def test_a_cached_answer_is_served_to_conversations_of_its_model_only(
    caching: Socket, page: AsyncClient
) -> None:
    async def origin_of(model: str) -> tuple[str, str]:
        name = str(uuid4())
        begun = {"client_message_id": name, "model": model}
        await page.post("/api/conversations", begun, content_type=KIND)
        _, done = await caching.ask("What is rain?", client_message_id=name)
        return done["origin"], done["model"]

    assert await origin_of("river") == ("model", "river")
    assert await origin_of("stone") == ("model", "stone")
    assert await origin_of("stone") == ("exact", "stone")
    assert await origin_of("river") == ("exact", "river")


async def test_a_conversation_is_read_ahead_by_the_engine_that_will_answer_it(
    socket: Socket, page: AsyncClient, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    accepted, _ = await socket.ask("hello")
    await put(page, accepted["conversation"], model="stone")
    asked: list[str] = []

    async def note(self: EngineClient, *_: Any) -> bool:
        asked.append(self.address)
        return True

    monkeypatch.setattr(EngineClient, "warm", note)
    await warm(caller_of_user(user), UUID(accepted["conversation"]))
    assert asked == [engines().every[1].address]


async def test_an_answer_that_goes_on_by_another_tokenizer_keeps_no_ids(
    socket: Socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _ = await socket.ask(script_text(text="one two", finish="length"))

    def pretend() -> None:
        Message.objects.filter(pk=first["answer"]).update(tokenizer="another one's")

    await run_in_db(pretend)
    given: list[GenerateRequest] = []
    submit = EngineClient.submit

    async def noted(self: EngineClient, request: GenerateRequest) -> Any:
        given.append(request)
        return await submit(self, request)

    monkeypatch.setattr(EngineClient, "submit", noted)
    name = uuid4()
    await socket.say("continue", client_message_id=name, message=first["answer"])
    accepted = await socket.until("accepted", client_message_id=name)
    await socket.until("done", generation=accepted["generation"])
    assert given[0].segments[-1].tokenizer == "another one's", (
        "whose ids they are goes along, and the engine reads text"
    )
    row = await run_in_db(Message.objects.get, pk=accepted["answer"])
    assert row.text.startswith("one two") and row.token_ids == []


def test_ids_of_two_tokenizers_make_no_ledger() -> None:
    def kept(tokenizer: str) -> tuple[int, ...]:
        record = Record(LiveAnswer(uuid4(), "one"), begun=Segment("assistant", "one", (1, 2), tokenizer))
        record.made_by(INFO)
        record.add_text(1, " two", (3,))
        progress = record.progress()
        assert (progress.text, progress.tokenizer) == ("one two", "ours")
        return tuple(progress.token_ids)

    assert kept("ours") == (1, 2, 3)
    assert kept("another one's") == ()


async def test_an_engine_that_was_started_again_leaves_nothing_under_its_former_name(caching: Socket) -> None:
    """The first question after that meets what the engine said before."""
    known = await served()
    former = dataclasses.replace(known.infos[0], engine="before", revision="before", tokenizer="before")
    engines().every[0].info = former
    _, done = await caching.ask("What is snow?")
    answer = await run_in_db(Message.objects.get, generation=done["generation"])
    assert answer.token_ids and answer.tokenizer == known.infos[0].tokenizer
    _, again = await caching.ask("What is snow?")
    assert again["origin"] == "model", (
        "what is in the cache under the former revision is not this one's answer"
    )
    engines().every[0].info = former
    _, before = await caching.ask("What is snow?")
    assert before["origin"] == "model"


async def test_erasing_a_conversation_is_told_to_both_engines(
    socket: Socket, page: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    accepted, _ = await socket.ask("hello")
    told_to: list[str] = []
    forget = EngineClient.forget

    async def noted(self: EngineClient, owner: Any) -> int:
        told_to.append(self.address)
        return await forget(self, owner)

    monkeypatch.setattr(EngineClient, "forget", noted)
    await page.delete(f"/api/conversations/{accepted['conversation']}")
    assert {engine.address for engine in engines().every} <= set(told_to)
