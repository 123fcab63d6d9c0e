"""Equal questions at once: who leads, who waits, and what becomes of those whose leader is gone."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from django.utils import timezone

from semcache import flights, service
from semcache.models import CacheFlight, CacheRule
from semcache.service import Answer, Decision, Question, lookup, remember
from semcache.storage import flight_rows
from semcache.storage.threads import in_database
from tests.semcache import factories
from tests.semcache.factories import all_apart, question

ASKED = "Describe rain in winter."


@pytest.fixture(autouse=True)
def only_rule(committed) -> Iterator[CacheRule]:
    CacheFlight.objects.all().delete()
    yield factories.rule(sharing="public")
    CacheFlight.objects.all().delete()


async def looked(**changes) -> tuple[Decision, Question]:
    asked = question(ASKED, **changes)
    return await lookup(asked, all_apart), asked


async def boarded(me: UUID, **changes) -> flights.Boarding:
    boarding = await flights.board(*await looked(**changes), me)
    assert boarding is not None
    return boarding


async def past(leader: UUID) -> None:
    await CacheFlight.objects.filter(leader=leader).aupdate(expires_at=timezone.now() - timedelta(seconds=1))


async def test_of_fifty_at_once_one_leads_and_all_are_aboard():
    """SC-11."""
    passengers = [uuid4() for _ in range(50)]
    decision, asked = await looked()
    boardings = await asyncio.gather(*(flights.board(decision, asked, me) for me in passengers))
    (leader,) = {boarding.leader for boarding in boardings if boarding}
    assert [boarding.is_leader for boarding in boardings if boarding].count(True) == 1
    flight = await flights.find(leader)
    assert flight is not None and set(flight.aboard) == set(passengers)


@pytest.mark.parametrize("change", [{"owner": "user:2"}, {"tenant": "sales"}])
async def test_a_private_question_is_shared_with_its_owner_only(change):
    await CacheRule.objects.aupdate(sharing="private")
    service.forget_rules()
    mine, again, theirs = uuid4(), uuid4(), uuid4()
    assert (await boarded(mine)).is_leader
    assert (await boarded(again)).leader == mine
    assert (await boarded(theirs, **change)).is_leader


@pytest.mark.parametrize(
    "changes",
    [{"may_read": False}, {"may_store": False}, {"temperature": 1.7}],
    ids=["asked fresh", "temporary chat", "too hot for the cache"],
)
async def test_what_may_not_come_from_the_store_is_nobody_elses_business(changes):
    assert await flights.board(*await looked(**changes), uuid4()) is None


@pytest.mark.parametrize("mode", ["off", "shadow"])
async def test_rules_that_never_serve_share_nothing(mode):
    await CacheRule.objects.aupdate(mode=mode)
    service.forget_rules()
    assert await flights.board(*await looked(), uuid4()) is None


async def test_followers_wait_until_the_leader_can_be_followed():
    leader = uuid4()
    await boarded(leader)
    waiting = asyncio.create_task(flights.wait_up(leader))
    await asyncio.sleep(0)
    assert not waiting.done()
    await flights.depart(leader, 60)
    assert await waiting


async def test_a_dead_leaders_place_is_taken_and_its_followers_come_over():
    dead, heir, other = uuid4(), uuid4(), uuid4()
    await boarded(dead)
    await past(dead)
    assert not await flights.wait_up(dead)
    assert (await boarded(heir)).is_leader
    assert (await boarded(other)).leader == heir
    await flights.depart(dead, 60)  # it lives after all, and makes its answer for itself
    assert not await flights.land(dead)
    assert await in_database(flight_rows.is_up, heir) is False


async def test_who_leaves_is_told_who_is_still_aboard():
    leader, follower = uuid4(), uuid4()
    await boarded(leader)
    await flights.depart(leader, 60)
    await boarded(follower)
    first = await flights.leave(leader)
    assert first is not None and (first.leader, first.aboard) == (leader, (follower,))
    again = await flights.leave(leader)
    assert again is not None and again.aboard == (follower,), "a second stop would end what a follower reads"
    last = await flights.leave(follower)
    assert last is not None and (last.leader, last.aboard) == (leader, ())
    assert await CacheFlight.objects.acount() == 0


async def test_when_all_leave_at_once_exactly_one_is_the_last():
    passengers = [uuid4() for _ in range(20)]
    for me in passengers:
        await boarded(me)
    left = await asyncio.gather(*(flights.leave(me) for me in passengers))
    assert [flight is not None and not flight.aboard for flight in left].count(True) == 1


async def test_one_of_many_stores_the_answer():
    leader = uuid4()
    await boarded(leader)
    assert (await asyncio.gather(*(flights.land(leader) for _ in range(20)))).count(True) == 1


async def test_what_was_stored_since_the_look_up_is_found_instead_of_made_again():
    decision, asked = await looked()
    await remember(decision, asked, Answer("Wet.", is_complete=True))
    boarding = await flights.board(decision, asked, uuid4())
    assert boarding is not None and boarding.hit is not None and boarding.hit.answer == "Wet."
    assert await CacheFlight.objects.acount() == 0


async def test_a_broken_store_leaves_everybody_to_themselves(monkeypatch):
    decision, asked = await looked()
    monkeypatch.setattr(flight_rows, "BOARD", "SELECT nonsense")
    assert await flights.board(decision, asked, uuid4()) is None
    monkeypatch.setattr(flight_rows, "STATE", "SELECT nonsense")
    assert not await flights.wait_up(uuid4())


async def test_forgotten_flights_are_cleared_by_whoever_leads_next():
    await CacheFlight.objects.acreate(
        scope="s",
        prompt_sha256="p",
        leader=uuid4(),
        aboard=[],
        expires_at=timezone.now() - timedelta(minutes=2),
    )
    me = uuid4()
    await boarded(me)
    assert [flight.leader async for flight in CacheFlight.objects.all()] == [me]
