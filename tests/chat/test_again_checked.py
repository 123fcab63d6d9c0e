"""A sample of the answers served by meaning is made once more, unseen, and counts for or against the rule."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec
import pytest

from chatsite.accounts.models import User
from chatsite.chat import again
from chatsite.chat.models import Generation
from chatsite.chat.turn import CacheControl, Turn
from chatsite.db import run_in_db
from inference.errors import NotSupported
from semcache import service
from semcache.models import CacheCheck, CacheEntry, CacheRule
from semcache.text.normalize import canonical
from tests.chat.again_site import age, heard
from tests.chat.broker import Broker
from tests.chat.only_engine import client
from tests.chat.test_cache_flight import Heard, read, turn_of

pytestmark = pytest.mark.usefixtures("stale_site")

QUESTION, REWORDED = "How do I switch on two-step login?", "How can I switch on two-step login ?"


async def by_meaning(user: User, answer: str = "", **rule: Any) -> CacheEntry:
    """An entry that another wording of its question finds, and a rule that has every such answer checked."""

    def change() -> None:
        values = {"mode": "semantic", "verify_similarity": 0.3, "accept_similarity": 0.3, "check_share": 1.0}
        CacheRule.objects.update(**(values | rule))
        service.forget_rules()

    await run_in_db(change)
    await read(turn_of(user, QUESTION), Heard())
    if answer:
        await run_in_db(lambda: CacheEntry.objects.update(answer=answer))
    return await run_in_db(CacheEntry.objects.get)


async def check_of(turn: Turn, broker: Broker) -> CacheCheck:
    told = await heard(turn)
    assert told.ended is not None and told.ended.origin == "semantic"
    assert await again.make(broker.orders[-1])
    return await run_in_db(CacheCheck.objects.get)


async def test_an_answer_served_by_meaning_is_made_once_more_and_compared(user: User, broker: Broker) -> None:
    entry = await by_meaning(user)
    turn = turn_of(user, REWORDED)
    check = await check_of(turn, broker)
    assert (check.kind, check.is_wrong, check.entry, check.generation) == (
        "sampled", False, entry.pk, turn.generation,
    )  # fmt: skip
    assert check.similarity is not None and 0.3 <= check.similarity < 1
    (order,) = broker.orders
    assert order.sampling.temperature == 0.0
    assert [segment.text for segment in order.segments] == [REWORDED]
    assert (await run_in_db(CacheEntry.objects.get)).answer == entry.answer, "a check changes no answer"


async def test_another_answer_counts_against_the_rule(user: User, broker: Broker) -> None:
    await by_meaning(user, "It costs 1000 euros. Rinse twice, then cook slowly.")
    check = await check_of(turn_of(user, REWORDED), broker)
    rule = await run_in_db(CacheRule.objects.get)
    assert check.is_wrong and check.rule_id == rule.pk


async def test_a_check_that_is_delivered_twice_counts_once(user: User, broker: Broker) -> None:
    await by_meaning(user)
    await check_of(turn_of(user, REWORDED), broker)
    assert not await again.make(broker.orders[0])
    assert await run_in_db(CacheCheck.objects.count) == 1


async def test_a_check_of_an_answer_that_was_erased_meanwhile_names_it_no_more(
    user: User, broker: Broker
) -> None:
    await by_meaning(user)
    turn = turn_of(user, REWORDED)
    await heard(turn)
    await run_in_db(Generation.objects.filter(pk=turn.generation).delete)
    assert await again.make(broker.orders[-1])
    assert (await run_in_db(CacheCheck.objects.get)).generation is None


async def test_what_could_not_be_made_again_is_no_evidence(user: User, broker: Broker) -> None:
    await by_meaning(user)
    await heard(turn_of(user, REWORDED))
    cut = dataclasses.replace(broker.orders[0].sampling, max_tokens=1)
    assert not await again.make(msgspec.structs.replace(broker.orders[0], sampling=cut))
    assert await run_in_db(CacheCheck.objects.count) == 0


async def test_without_a_verifier_the_words_are_compared(
    user: User, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def none(*_: Any) -> Any:
        raise NotSupported("no verifier is loaded")

    await by_meaning(user)
    monkeypatch.setattr(type(client()), "verify", none)
    assert not (await check_of(turn_of(user, REWORDED), broker)).is_wrong


@pytest.mark.parametrize(
    ("text", "rule", "cache"),
    [
        (QUESTION, {}, CacheControl()),
        (REWORDED, {"check_share": 0.0}, CacheControl()),
        (REWORDED, {}, CacheControl(may_store=False)),
    ],
    ids=["the very same question", "no share", "nothing may be stored"],
)
async def test_nothing_else_is_checked(
    user: User, broker: Broker, text: str, rule: dict[str, Any], cache: CacheControl
) -> None:
    await by_meaning(user, **rule)
    told = await heard(turn_of(user, text, cache=cache))
    assert told.ended is not None and told.ended.origin in ("exact", "semantic")
    assert broker.orders == []


async def test_a_stale_answer_found_by_meaning_is_made_anew_by_its_own_question(
    user: User, broker: Broker
) -> None:
    await run_in_db(age, await by_meaning(user))
    told = await heard(turn_of(user, REWORDED))
    assert told.accepted is not None and told.accepted.cache_outcome == "stale-semantic"
    (order,) = broker.orders
    assert [segment.text for segment in order.segments] == [canonical(QUESTION)]
    assert await again.make(order)
    entry = await run_in_db(CacheEntry.objects.get)
    assert entry.question == canonical(QUESTION) and entry.answer != "Only one."
