"""A thumb and a wish for another answer are kept, and reach the cache when the answer was one of its own."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import pytest
import pytest_asyncio
from django.test import AsyncClient

from chatsite.accounts.models import User
from chatsite.chat import feedback
from chatsite.chat.models import Feedback, Generation, Message
from chatsite.chat.turn import Caller
from chatsite.db import run_in_db
from chatsite.errors import InvalidRequest, InvalidText, NotFound
from semcache import service
from semcache.models import CacheCheck, CacheComplaint, CacheEntry, CacheRule
from tests.chat.socket import Socket

STORED, ASKED = "Which plans include backup?", "Which of the plans include a backup?"


@pytest_asyncio.fixture(loop_scope="package")
async def meaning(caching: Socket) -> Socket:
    """The cache looks at meaning, and takes the scripted engine's vectors for what they are."""
    await run_in_db(
        lambda: CacheRule.objects.update(mode="semantic", verify_similarity=0.3, accept_similarity=0.3)
    )
    service.forget_rules()
    return caching


async def semantic_hit(socket: Socket) -> UUID:
    """The message that repeats the stored answer."""
    await socket.ask(STORED)
    accepted, done = await socket.ask(ASKED)
    assert done["origin"] == "semantic"
    return UUID(accepted["answer"])


async def complaints() -> list[str]:
    return await run_in_db(lambda: list(CacheComplaint.objects.values_list("why", flat=True)))


async def rate(user: User, message: UUID, verdict: str, **changes: Any) -> None:
    await feedback.rate(Caller(user.pk, str(user.tenant_id)), message, verdict, **changes)


async def test_a_thumb_down_on_a_cached_answer_reaches_the_cache(meaning: Socket, user: User) -> None:
    answer = await semantic_hit(meaning)
    await rate(user, answer, "down", reason="another plan")
    kept = await run_in_db(Feedback.objects.get, message=answer)
    assert (kept.verdict, kept.reason) == ("down", "another plan")
    assert await complaints() == ["thumbs-down"]
    assert await run_in_db(CacheEntry.objects.count) == 0
    _, done = await meaning.ask(ASKED)
    assert done["origin"] == "model"


async def checks() -> list[tuple[str, bool, UUID | None]]:
    kept = CacheCheck.objects.values_list("kind", "is_wrong", "generation")
    return await run_in_db(lambda: list(kept.order_by("id")))


async def test_a_thumb_up_is_no_complaint_but_evidence_and_the_latest_word_counts(
    meaning: Socket, user: User
) -> None:
    answer = await semantic_hit(meaning)
    generation = await run_in_db(Generation.objects.get, message=answer)
    for _ in range(2):
        await rate(user, answer, "up")
    assert (await run_in_db(Feedback.objects.get, message=answer)).verdict == "up"
    assert await complaints() == []
    assert await checks() == [("thumb", False, generation.pk)]
    await rate(user, answer, "down")
    assert await checks() == [("thumb", True, generation.pk)]
    await rate(user, answer, "up")  # the answer is gone by now
    assert await checks() == [("thumb", False, generation.pk)]


async def repeated_follow_up(socket: Socket) -> UUID:
    """The answer to a later message, repeated in a conversation that is the same word for word."""
    for _ in range(2):
        first, _ = await socket.ask("Who leads the Bergen office?")
        where = {"conversation": first["conversation"], "parent": first["answer"]}
        accepted, done = await socket.ask("How old is she?", **where)
    assert done["origin"] == "exact"
    return UUID(accepted["answer"])


@pytest.mark.parametrize(("verdict", "num_left"), [("up", 2), ("down", 1)])
async def test_a_thumb_on_a_follow_up_that_was_repeated_word_for_word_says_nothing_of_meaning(
    meaning: Socket, user: User, verdict: str, num_left: int
) -> None:
    await rate(user, await repeated_follow_up(meaning), verdict)
    assert (await complaints(), await checks()) == ([], [])
    assert await run_in_db(CacheEntry.objects.count) == num_left, "a bad answer goes"


async def test_another_answer_asked_for_beside_a_cached_one_is_a_complaint(meaning: Socket) -> None:
    answer = await semantic_hit(meaning)
    await meaning.say("regenerate", client_message_id=uuid4(), message=answer)
    assert (await meaning.until("done"))["origin"] == "model"
    assert await complaints() == ["asked-fresh"]


async def test_answers_of_the_model_are_rated_without_the_cache(meaning: Socket, user: User) -> None:
    accepted, _ = await meaning.ask(STORED)
    await rate(user, UUID(accepted["answer"]), "down")
    assert await run_in_db(CacheEntry.objects.count) == 1
    assert await complaints() == []


async def test_only_the_own_answers_are_rated(meaning: Socket, user: User, other_user: User) -> None:
    accepted, _ = await meaning.ask(STORED)
    with pytest.raises(NotFound):
        await rate(other_user, UUID(accepted["answer"]), "down")
    with pytest.raises(NotFound):
        await rate(user, uuid4(), "down")
    with pytest.raises(InvalidRequest):
        await rate(user, UUID(accepted["user_message"]), "down")
    with pytest.raises(InvalidText):
        await rate(user, UUID(accepted["answer"]), "down", reason="a\x00b")
    assert await run_in_db(Feedback.objects.count) == 0
    assert await run_in_db(Message.objects.count) == 2


@pytest.mark.parametrize(
    ("body", "status"), [({"verdict": "down"}, 204), ({"verdict": "so-so"}, 400), ({}, 400)]
)
async def test_the_page_rates_by_its_api(
    meaning: Socket, user: User, body: dict[str, str], status: int
) -> None:
    accepted, _ = await meaning.ask(STORED)
    page = AsyncClient()
    await page.aforce_login(user)
    url = f"/api/messages/{accepted['answer']}/feedback"
    answer = await page.put(url, body, content_type="application/json")
    assert answer.status_code == status
    assert await run_in_db(Feedback.objects.count) == (status == 204)


async def test_a_page_that_is_loaded_again_shows_the_own_thumb_and_nobody_elses(
    meaning: Socket, user: User, other_user: User
) -> None:
    accepted, _ = await meaning.ask(STORED)
    answer = UUID(accepted["answer"])
    await run_in_db(Feedback.objects.create, message_id=answer, user=other_user, verdict="up")
    page = AsyncClient()
    await page.aforce_login(user)
    url = f"/api/conversations/{accepted['conversation']}/messages"
    assert [row["feedback"] for row in (await page.get(url)).json()["items"]] == [None, None]
    await rate(user, answer, "down")
    assert [row["feedback"] for row in (await page.get(url)).json()["items"]] == [None, "down"]
