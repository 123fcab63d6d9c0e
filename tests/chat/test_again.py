"""Answers made again, unseen: once for many hits, by one worker, at nobody's cost, and dropped when in the way."""

from __future__ import annotations

import asyncio
import dataclasses
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import msgspec
import pytest
from django.utils import timezone

from chatsite.accounts.models import UsageRecord, User
from chatsite.chat import again, again_asked, tasks
from chatsite.chat.models import Generation
from chatsite.chat.turn import CacheControl, Turn
from chatsite.db import run_in_db
from inference.testing import script_text
from inference.types import Sampling, Segment
from semcache import again as places
from semcache.models import CacheEntry, CacheFlight
from tests.chat.again_site import age, heard
from tests.chat.broker import Broker
from tests.chat.conftest import open_socket
from tests.chat.only_engine import client
from tests.chat.test_cache_flight import Heard, read, turn_of

pytestmark = pytest.mark.usefixtures("stale_site")

ASKED = script_text(text="Both of them.")
HOUR = timedelta(hours=1)


async def stored(user: User, text: str = ASKED, segments: tuple[Segment, ...] = ()) -> CacheEntry:
    """The entry of a question that was answered two minutes ago, so that its time is over."""
    turn = turn_of(user, text)
    await read(Turn(turn.caller, turn.generation, segments) if segments else turn, Heard())
    entry = await run_in_db(CacheEntry.objects.get)
    await run_in_db(age, entry)
    return entry


async def num_places() -> int:
    return await run_in_db(CacheFlight.objects.count)


async def test_a_stale_answer_is_served_at_once_and_made_anew_for_the_next(
    user: User, broker: Broker
) -> None:
    old = await stored(user)
    told = await heard(turn_of(user, ASKED))
    assert told.text == "Only one." and told.accepted is not None and told.ended is not None
    assert (told.accepted.cache_outcome, told.ended.origin) == ("stale-exact", "exact")
    assert told.ended.cache_is_stale and told.ended.cache_age_s and told.ended.cache_age_s >= 120
    assert told.accepted.cache_age_s == told.ended.cache_age_s
    (order,) = broker.orders
    assert await again.make(order)
    entry = await run_in_db(CacheEntry.objects.get)
    assert (entry.pk, entry.answer) == (old.pk, "Both of them.")
    assert entry.expires_at - entry.created_at == timedelta(seconds=60)
    assert entry.num_tokens == len(entry.token_ids) > 0 and entry.took_ms > 0
    fresh = await heard(turn_of(user, ASKED))
    assert fresh.accepted is not None and fresh.text == "Both of them."
    assert fresh.accepted.cache_outcome == "hit-exact" and len(broker.orders) == 1


async def test_the_page_is_told_that_it_was_stale_also_when_it_comes_back(user: User, broker: Broker) -> None:
    socket = await open_socket(user)
    await socket.ask(ASKED)
    await run_in_db(age, await run_in_db(CacheEntry.objects.get))
    accepted, done = await socket.ask(ASKED)
    assert (done["origin"], done["cache_is_stale"]) == ("exact", True)
    assert (await run_in_db(Generation.objects.get, pk=accepted["generation"])).cache_is_stale
    await socket.close()


async def test_many_hits_at_once_make_it_anew_once(user: User, broker: Broker) -> None:
    await stored(user)
    all_told = await asyncio.gather(*(heard(turn_of(user, ASKED)) for _ in range(20)))
    assert {told.text for told in all_told} == {"Only one."}
    assert len(broker.orders) == 1


async def test_nobody_is_charged_and_no_row_is_left(user: User, broker: Broker) -> None:
    await stored(user)
    await heard(turn_of(user, ASKED))
    before = await run_in_db(Generation.objects.count)
    assert await again.make(broker.orders[0])
    assert await run_in_db(Generation.objects.count) == before
    booked = await run_in_db(UsageRecord.objects.get, origin="again")
    assert (booked.user_id, booked.tenant_id, booked.state) == (None, user.tenant_id, "complete")
    assert booked.generated_tokens > 0 and not booked.is_owed
    assert await num_places() == 0


async def test_an_order_that_is_delivered_twice_is_made_once(user: User, broker: Broker) -> None:
    await stored(user)
    await heard(turn_of(user, ASKED))
    (order,) = broker.orders
    before = (await client().stats()).generated_tokens
    made = await asyncio.gather(again.make(order), again.make(order))
    assert sorted(made) == [False, True]
    assert (await client().stats()).generated_tokens - before == len(
        (await run_in_db(CacheEntry.objects.get)).token_ids
    )
    assert not await again.make(order), "a broker may deliver it once more much later"


async def test_a_worker_that_died_holds_its_place_only_for_its_time(user: User, broker: Broker) -> None:
    await stored(user)
    await heard(turn_of(user, ASKED))
    assert await run_in_db(places.claim, broker.orders[0].run, 60.0)  # and never heard of again
    await heard(turn_of(user, ASKED))
    assert len(broker.orders) == 1
    await run_in_db(lambda: CacheFlight.objects.update(expires_at=timezone.now() - HOUR))
    await heard(turn_of(user, ASKED))
    assert len(broker.orders) == 2 and await again.make(broker.orders[1])


async def test_no_more_than_allowed_are_under_way(user: User, broker: Broker, config: Any) -> None:
    config(cache_again_at_once=2)
    runs = [uuid4() for _ in range(5)]
    reserved = await asyncio.gather(*(run_in_db(places.reserve, str(run), run, 60.0, 2) for run in runs))
    assert reserved.count(True) == 2
    await stored(user)
    await heard(turn_of(user, ASKED))
    assert broker.orders == []
    await run_in_db(places.release, runs[reserved.index(True)])
    await heard(turn_of(user, ASKED))
    assert len(broker.orders) == 1


async def test_none_are_made_where_none_are_allowed(user: User, broker: Broker, config: Any) -> None:
    config(cache_again_at_once=0)
    await stored(user)
    assert (await heard(turn_of(user, ASKED))).text == "Only one."
    assert broker.orders == []


@pytest.mark.parametrize("state", [{"waiting": 1}, {"waiting_offline": 1}, {"is_ready": False}])
async def test_nothing_is_sent_while_somebody_waits_for_the_engine(
    user: User, broker: Broker, monkeypatch: pytest.MonkeyPatch, state: dict[str, Any]
) -> None:
    await stored(user)
    busy = dataclasses.replace(await client().stats(), **state)

    async def stats(_: Any) -> Any:
        return busy

    monkeypatch.setattr(type(client()), "stats", stats)
    assert (await heard(turn_of(user, ASKED))).text == "Only one."
    assert broker.orders == [] and await num_places() == 0


async def test_the_broker_drops_what_no_worker_takes_in_time(user: User, broker: Broker) -> None:
    await stored(user)
    await heard(turn_of(user, ASKED))
    (sent,) = broker.sent
    assert sent["name"] == tasks.make_again.name
    assert sent["expires"] == again_asked.TAKEN_WITHIN_S
    assert tasks.make_again.time_limit > again.MADE_WITHIN_S + again.GRACE_S
    await run_in_db(lambda: CacheFlight.objects.update(expires_at=timezone.now()))
    assert not await again.make(broker.orders[0]), "its place is another's by now"


async def test_a_broker_that_is_away_costs_no_answer(user: User, broker: Broker) -> None:
    broker.is_away = True
    await stored(user)
    assert (await heard(turn_of(user, ASKED))).text == "Only one."
    await run_in_db(lambda: CacheFlight.objects.update(expires_at=timezone.now()))
    broker.is_away = False
    await heard(turn_of(user, ASKED))
    assert len(broker.orders) == 1


@pytest.mark.parametrize(
    "spoilt",
    [
        {"segments": (Segment("user", script_text(text="Half of it", fail_after=1)),)},
        {"sampling": Sampling(max_tokens=1)},
    ],
    ids=["failed", "cut"],
)
async def test_a_failed_making_leaves_the_stale_answer(
    user: User, broker: Broker, spoilt: dict[str, Any]
) -> None:
    await stored(user)
    await heard(turn_of(user, ASKED))
    order = msgspec.structs.replace(broker.orders[0], **spoilt)
    assert not await again.make(order)
    assert (await heard(turn_of(user, ASKED))).text == "Only one."
    assert len(broker.orders) == 2, "the next hit asks again"


async def test_another_model_does_not_answer_for_the_one_before(user: User, broker: Broker) -> None:
    await stored(user)
    await heard(turn_of(user, ASKED))
    assert not await again.make(msgspec.structs.replace(broker.orders[0], revision="another"))


async def test_what_was_evicted_meanwhile_does_not_come_back(user: User, broker: Broker) -> None:
    await stored(user)
    await heard(turn_of(user, ASKED))
    await run_in_db(CacheEntry.objects.all().delete)
    assert not await again.make(broker.orders[0])
    assert await run_in_db(CacheEntry.objects.count) == 0


async def test_with_a_history_the_whole_of_it_is_asked_again(user: User, broker: Broker) -> None:
    before = (Segment("user", "I have a shop."), Segment("assistant", "Good.", (1, 2), "other"))
    whole = (Segment("system", "Be brief."), *before, Segment("user", ASKED))
    await stored(user, segments=whole)
    turn = turn_of(user, ASKED)
    told = await heard(Turn(turn.caller, turn.generation, whole))
    assert told.text == "Only one."
    assert [(one.role, one.text) for one in broker.orders[0].segments] == [
        (one.role, one.text) for one in whole
    ]
    assert await again.make(broker.orders[0])


async def test_who_wants_nothing_stored_has_nothing_made(user: User, broker: Broker) -> None:
    await stored(user)
    told = await heard(turn_of(user, ASKED, cache=CacheControl(may_store=False)))
    assert told.text == "Only one." and broker.orders == []


async def test_the_words_stay_under_their_askers_name(user: User, broker: Broker) -> None:
    await stored(user)
    turn = turn_of(user, ASKED)
    await heard(turn)
    (order,) = broker.orders
    assert (order.tenant, order.owner) == (turn.caller.tenant, turn.caller.owner)
    assert isinstance(order.run, UUID) and order.run != turn.generation
