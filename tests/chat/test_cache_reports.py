"""SC-03, SC-07, DB-03 in conversations: follow-ups stay in theirs, replays are answers, odd characters cost nothing."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio
from django.test import AsyncClient

from chatsite.accounts.models import User
from chatsite.chat.models import Conversation, Message
from chatsite.db import run_in_db
from inference.testing import script_text
from semcache import service
from semcache.models import CacheEntry, CacheRule
from tests.chat.socket import Socket

ANSWER = "Here 😀:\n\n```python\nprint('héllo, 世界')\n```\n\n" + " ".join(
    f"word{number}" for number in range(390)
)


@pytest_asyncio.fixture(loop_scope="package")
async def meaning(caching: Socket) -> Socket:
    """The cache looks at meaning and takes everything for alike enough, so that only its other checks keep it right."""
    await run_in_db(
        lambda: CacheRule.objects.update(mode="semantic", verify_similarity=0.0, accept_similarity=0.0)
    )
    service.forget_rules()
    return caching


async def conversation(socket: Socket, *texts: str) -> list[str]:
    """Where the answers of a new conversation came from."""
    origins, where = [], {}
    for text in texts:
        accepted, done = await socket.ask(text, **where)
        where = {"conversation": accepted["conversation"], "parent": accepted["answer"]}
        origins.append(done["origin"])
    return origins


async def test_a_follow_up_never_takes_another_conversations_answer(meaning: Socket) -> None:
    """SC-03."""
    bergen, porto = "Who leads the Bergen office?", "Who leads the Porto office?"
    assert await conversation(meaning, bergen, "How old is she?") == ["model", "model"]
    assert await conversation(meaning, porto, "How old is she?") == ["model", "model"]
    for short in ("continue", "yes", "再详细一点"):
        assert await conversation(meaning, "Name a river.", short) != ["exact", "exact"]
        assert (await conversation(meaning, "Name a mountain.", short))[1] == "model"
    assert await conversation(meaning, bergen, "How old is she?") == ["exact", "exact"], "word for word"


@pytest.mark.parametrize("text", ["", "   ", "\n\t"])
async def test_an_empty_message_meets_no_answer(meaning: Socket, text: str) -> None:
    """SC-03."""
    await meaning.ask("Describe rain.")
    await meaning.say("send", client_message_id=uuid4(), text=text)
    assert (await meaning.until("error"))["code"] == "invalid_request"


async def test_a_replay_is_the_answer_in_pieces_with_its_ids_and_its_origin(caching: Socket) -> None:
    """SC-07."""
    question = script_text(text=ANSWER)
    accepted, first = await caching.ask(question)
    again, second = await caching.ask(question)
    assert (first["origin"], second["origin"]) == ("model", "exact")
    assert caching.text_of(second) == caching.text_of(first) == ANSWER
    assert first["finish_reason"] == second["finish_reason"] == "stop"
    pieces = [
        frame
        for frame in caching.seen
        if frame["type"] == "delta" and frame["generation"] == second["generation"]
    ]
    assert len(pieces) > 1
    rows = await run_in_db(Message.objects.in_bulk, [accepted["answer"], again["answer"]])
    made, replayed = rows.values()
    assert made.text == replayed.text and made.token_ids == replayed.token_ids != []


async def test_the_turn_after_a_replay_has_the_history_of_the_one_after_the_answer(caching: Socket) -> None:
    """SC-07."""
    for first_from, then_from in (("model", "model"), ("exact", "exact")):
        accepted, first = await caching.ask("What is the capital of France?")
        where = {"conversation": accepted["conversation"], "parent": accepted["answer"]}
        _, then = await caching.ask("And of Spain, please?", **where)
        assert (first["origin"], then["origin"], then["state"]) == (first_from, then_from, "complete")


async def test_a_replay_that_nobody_hears_leaves_the_entry_whole(caching: Socket) -> None:
    """SC-07."""
    question = script_text(text=ANSWER)
    await caching.ask(question)
    accepted = await caching.send(question)
    await caching.say("stop", generation=accepted["generation"])
    await caching.until("done", generation=accepted["generation"])
    assert (await run_in_db(CacheEntry.objects.get)).answer == ANSWER
    _, third = await caching.ask(question)
    assert (third["origin"], caching.text_of(third)) == ("exact", ANSWER)


@pytest.mark.parametrize("text", ["ab\\u0000cd", "ok \\ud83d end", "\\udc97"])
async def test_a_conversation_goes_on_after_characters_that_no_database_holds(
    caching: Socket, text: str
) -> None:
    """DB-03."""
    accepted, _ = await caching.ask("Hello there")
    where = f'"conversation": "{accepted["conversation"]}", "parent": "{accepted["answer"]}"'
    await caching.say_raw(f'{{"type": "send", "client_message_id": "{uuid4()}", "text": "{text}", {where}}}')
    assert (await caching.until("error"))["code"] in ("invalid_text", "invalid_frame")
    where_next = {"conversation": accepted["conversation"], "parent": accepted["answer"]}
    assert (await caching.ask("Still \U0001f600 here?", **where_next))[1]["state"] == "complete"


async def test_an_answer_with_a_nul_is_stored_without_it_everywhere(caching: Socket) -> None:
    """DB-03."""
    question = script_text(text="a\x00b")
    accepted, done = await caching.ask(question)
    assert done["state"] == "complete"
    kept = await run_in_db(Message.objects.get, pk=accepted["answer"])
    entries: list[Any] = await run_in_db(lambda: list(CacheEntry.objects.values_list("answer", flat=True)))
    assert "\x00" not in kept.text and all("\x00" not in answer for answer in entries)
    _, again = await caching.ask(question)
    assert again["state"] == "complete"


async def test_a_title_with_a_nul_is_refused_or_cleaned(caching: Socket, user: User) -> None:
    """DB-03."""
    accepted, _ = await caching.ask("Hello there")
    page = AsyncClient()
    await page.aforce_login(user)
    url = f"/api/conversations/{accepted['conversation']}"
    for title in ("ab\x00cd", "ok \ud83d end"):
        answer = await page.patch(url, {"title": title}, content_type="application/json")
        assert answer.status_code in (200, 400)
        assert "\x00" not in (await run_in_db(Conversation.objects.get, pk=accepted["conversation"])).title
    assert (await page.get("/api/conversations?q=%00")).status_code in (200, 400)
    assert (await page.get(url)).status_code == 200
