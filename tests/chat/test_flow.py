"""The life of one answer over the socket: accepted, streamed, stored, ended once."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import pytest

from chatsite.accounts.models import UsageRecord, User
from chatsite.chat import generations
from chatsite.chat.models import Conversation, Generation, Message, State
from chatsite.chat.running import running
from chatsite.db import run_in_db
from inference.testing import script_text
from tests.chat.conftest import open_socket
from tests.chat.socket import Socket


def stored(generation: str) -> Generation:
    return Generation.objects.select_related("message").get(pk=generation)


async def text_stored(frame: dict[str, Any]) -> str:
    return (await run_in_db(stored, frame["generation"])).message.text


async def test_an_answer_is_streamed_stored_and_booked(socket: Socket, user: User) -> None:
    accepted, done = await socket.ask("hello there")
    assert socket.text_of(done) == "You said: hello there (2 words)"
    row = await run_in_db(stored, done["generation"])
    assert (row.state, row.message.text, row.message.state) == ("complete", socket.text_of(done), "complete")
    assert done["finish_reason"] == "stop"
    assert done["origin"] == "model"
    assert str(row.message.pk) == accepted["answer"]
    booked = await run_in_db(UsageRecord.objects.get, generation=UUID(done["generation"]))
    assert (booked.user_id, booked.generated_tokens) == (user.pk, row.generated_tokens)


async def test_the_acknowledged_message_is_in_the_database_before_the_acknowledgement(socket: Socket) -> None:
    accepted = await socket.send(script_text(text="a long answer", first_delay_ms=400))
    question = await run_in_db(Message.objects.get, pk=accepted["user_message"])
    answer = await run_in_db(Message.objects.get, pk=accepted["answer"])
    assert (question.state, answer.state in ("queued", "running"), answer.parent_id) == (
        "complete",
        True,
        question.pk,
    )
    await socket.until("done")


async def test_a_follow_up_gives_the_model_the_ids_it_made(socket: Socket) -> None:
    accepted, _ = await socket.ask("first")
    _, done = await socket.ask("second", conversation=accepted["conversation"], parent=accepted["answer"])
    first = await run_in_db(Message.objects.get, pk=accepted["answer"])
    assert first.token_ids
    assert first.tokenizer
    row = await run_in_db(stored, done["generation"])
    assert row.prompt_tokens > len(first.token_ids)


async def test_an_engine_failure_keeps_the_partial_text(socket: Socket) -> None:
    accepted, done = await socket.ask(script_text(text="one two three four", fail_after=2))
    assert (done["state"], done["is_retryable"]) == ("failed", True)
    assert done["error_code"]
    text = await text_stored(done)
    assert text
    assert text == socket.text_of(done)
    _, again = await socket.ask(
        "still there?", conversation=accepted["conversation"], parent=accepted["answer"]
    )
    assert again["state"] == "complete"


async def test_stop_ends_a_running_answer_and_keeps_its_text(socket: Socket) -> None:
    accepted = await socket.send(script_text(tokens=1000, delay_ms=20))
    await socket.until("delta")
    await socket.say("stop", generation=accepted["generation"])
    done = await socket.until("done")
    assert done["state"] == "stopped"
    text = await text_stored(done)
    assert text == socket.text_of(done)
    await socket.say("stop", generation=accepted["generation"])
    await socket.say("ping")
    await socket.until("pong")
    assert (await run_in_db(stored, done["generation"])).state == "stopped"


async def test_stop_from_another_socket_ends_it_too(socket: Socket, user: User) -> None:
    accepted = await socket.send(script_text(tokens=1000, delay_ms=20))
    await socket.until("delta")
    other = await open_socket(user)
    await other.say("stop", generation=accepted["generation"])
    assert (await socket.until("done"))["state"] == "stopped"
    await other.close()


async def test_stop_before_the_first_token_ends_it(socket: Socket) -> None:
    accepted = await socket.send(script_text(tokens=10, first_delay_ms=60_000))
    await socket.say("stop", generation=accepted["generation"])
    assert (await socket.until("done"))["state"] == "stopped"


async def test_a_closed_tab_does_not_end_the_answer(engine: Any, user: User) -> None:
    tab = await open_socket(user)
    accepted = await tab.send(script_text(tokens=30, delay_ms=10))
    await tab.until("delta")
    await tab.close()
    later = await open_socket(user)
    await later.say("attach", generation=accepted["generation"])
    done = await later.until("done")
    assert done["state"] == "complete"
    assert later.text_of(done) == await text_stored(done)
    await later.close()


async def test_attaching_at_any_time_gives_the_same_text(socket: Socket, user: User) -> None:
    accepted = await socket.send(script_text(tokens=24, delay_ms=15))
    tabs = []
    for _ in range(4):
        await socket.until("delta")
        tab = await open_socket(user)
        await tab.say("attach", generation=accepted["generation"], after=3)
        tabs.append(tab)
    done = await socket.until("done")
    for tab in tabs:
        assert tab.text_of(await tab.until("done")) == socket.text_of(done) == await text_stored(done)
        await tab.close()


async def test_an_answer_of_another_process_is_followed_and_stopped(
    socket: Socket, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    accepted = await socket.send(script_text(tokens=2000, delay_ms=10))
    await socket.until("delta")
    here = running().get(UUID(accepted["generation"]))
    # Another process has no live text of it: it reads the engine's log and the database.
    monkeypatch.setattr("chatsite.chat.following.running", dict)
    tab = await open_socket(user)
    await tab.say("attach", generation=accepted["generation"])
    await tab.until("snapshot")
    await tab.until("delta")
    await tab.say("stop", generation=accepted["generation"])
    done = await tab.until("done")
    assert (await socket.until("done"))["state"] == done["state"] == "stopped"
    assert here is not None
    assert tab.text_of(done) == socket.text_of(done) == await text_stored(done)
    await tab.close()


async def test_a_message_sent_five_times_at_once_is_one_message(socket: Socket, user: User) -> None:
    tabs = [socket, await open_socket(user), await open_socket(user)]
    name = uuid4()
    for tab in [*tabs, socket, socket]:
        await tab.say("send", client_message_id=name, text="only once")
    accepted = [await tab.until("accepted") for tab in [*tabs, socket, socket]]
    assert len({frame["answer"] for frame in accepted}) == 1
    assert await run_in_db(Message.objects.filter(role="user").count) == 1
    assert await run_in_db(Conversation.objects.count) == 1
    await socket.until("done")
    for tab in tabs[1:]:
        await tab.close()


async def test_another_text_under_the_same_id_is_refused(socket: Socket) -> None:
    name = uuid4()
    await socket.ask("one text", client_message_id=name)
    await socket.say("send", client_message_id=name, text="another text")
    error = await socket.until("error", client_message_id=name)
    assert error["code"] == "id_reused"


async def test_a_second_question_waits_for_the_first_answer_and_sees_it(socket: Socket) -> None:
    first = await socket.send(script_text(tokens=20, delay_ms=20))
    second = await socket.send("and then?", conversation=first["conversation"], parent=None)
    assert second["parent"] == first["answer"]
    done = await socket.until("done", generation=first["generation"])
    last = await socket.until("done", generation=second["generation"])
    counts = [(await run_in_db(stored, frame["generation"])).prompt_tokens for frame in (done, last)]
    assert counts[1] > counts[0] + done["generated_tokens"] - 1


async def test_an_edit_keeps_its_parent_and_becomes_a_branch(socket: Socket) -> None:
    first, _ = await socket.ask("original")
    edited, _ = await socket.ask("edited", conversation=first["conversation"], parent=None, branch=True)
    assert edited["parent"] is None
    conversation = await run_in_db(Conversation.objects.get, pk=first["conversation"])
    assert str(conversation.active_leaf_id) == edited["answer"]


async def test_regenerate_puts_a_second_answer_beside_the_first(socket: Socket) -> None:
    first, _ = await socket.ask("question")
    name = uuid4()
    for _ in range(2):
        await socket.say("regenerate", client_message_id=name, message=first["answer"])
    again = [await socket.until("accepted", client_message_id=name) for _ in range(2)]
    assert again[0]["answer"] == again[1]["answer"] != first["answer"]
    assert again[0]["user_message"] == first["user_message"]
    await socket.until("done", generation=again[0]["generation"])


async def test_an_answer_that_was_cut_for_its_length_goes_on_beside_it(socket: Socket) -> None:
    first, done = await socket.ask(script_text(text="one two", finish="length"))
    name = uuid4()
    await socket.say("continue", client_message_id=name, message=first["answer"])
    accepted = await socket.until("accepted", client_message_id=name)
    assert accepted["user_message"] == first["user_message"] != accepted["answer"] != first["answer"]
    begun = await socket.until("delta", generation=accepted["generation"])
    assert (begun["offset"], begun["text"]) == (0, socket.text_of(done))
    await socket.until("done", generation=accepted["generation"])
    _, whole = await socket.ask("echo")
    await socket.say(
        "continue",
        client_message_id=uuid4(),
        message=(await run_in_db(stored, whole["generation"])).message_id,
    )
    assert (await socket.until("error"))["code"] == "not_continuable"


async def test_another_tab_hears_that_an_answer_began(socket: Socket, user: User) -> None:
    first, _ = await socket.ask("question")
    tab = await open_socket(user)
    await tab.say("watch", conversation=first["conversation"])
    await tab.say("ping")
    await tab.until("pong")
    second = await socket.send("more", conversation=first["conversation"], parent=first["answer"])
    assert (await tab.until("started"))["generation"] == second["generation"]
    await socket.until("done")
    await tab.close()


async def test_what_is_past_its_deadline_ends_as_failed(socket: Socket, config: Any) -> None:
    config(deadline_s=1.0)
    _, done = await socket.ask(script_text(tokens=10, delay_ms=5000))
    assert (done["state"], done["is_retryable"]) == ("failed", True)
    assert (await run_in_db(stored, done["generation"])).state == "failed"


async def test_model_output_that_the_database_refuses_is_cleaned(socket: Socket) -> None:
    _, done = await socket.ask(script_text(text="a\x00b 你好 😀"))
    assert await text_stored(done) == socket.text_of(done) == "ab 你好 😀"


async def test_the_first_final_state_stands(socket: Socket) -> None:
    _, done = await socket.ask("done")
    for state in State:
        assert not await run_in_db(generations.move, UUID(done["generation"]), state)
    assert (await run_in_db(stored, done["generation"])).state == "complete"


async def test_an_engine_that_is_away_ends_the_answer_as_failed(user: User, config: Any, clean: None) -> None:
    config(engine_address="unix:/nonexistent/engine.sock", engine_call_timeout_s=0.5, cache_enabled=False)
    socket = await open_socket(user)
    _, done = await socket.ask("anybody?")
    assert (done["state"], done["error_code"], done["is_retryable"]) == ("failed", "engine_unavailable", True)
    await socket.close()
