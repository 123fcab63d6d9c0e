"""Equal questions at once through the flow: one generation, one text for all, and a stop that hurts nobody else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

import pytest
import pytest_asyncio
from django.conf import settings

from chatsite.accounts.callers import caller_of_user
from chatsite.accounts.models import User
from chatsite.chat.adoption import adopt_orphans
from chatsite.chat.ending import stop
from chatsite.chat.events import Accepted, Ended, Piece
from chatsite.chat.models import Generation
from chatsite.chat.running import Running, running
from chatsite.chat.turn import Turn
from chatsite.db import run_in_db
from inference.testing import EngineProcess, script_text
from inference.types import Segment
from semcache import flights, service
from semcache.models import CacheEntry, CacheFlight, CacheRule
from semcache.text import admission
from tests.chat.conftest import open_socket
from tests.chat.only_engine import client
from tests.chat.replies import reply
from tests.chat.socket import Socket
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.usefixtures("caching_site")


@dataclass
class Heard:
    """What one `/v1` reader was told."""

    text: str = ""
    accepted: Accepted | None = None
    ended: Ended | None = None
    started: asyncio.Event = field(default_factory=asyncio.Event)


@pytest_asyncio.fixture(loop_scope="package")
async def caching_site(
    engine: EngineProcess, config: Any, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[None]:
    """A store that answers: on a busy machine too nobody goes on alone because a look took its time."""

    def only_rule() -> None:
        CacheRule.objects.all().delete()
        CacheFlight.objects.all().delete()
        CacheRule.objects.create(name="everything", mode="exact", sharing="public")

    config(cache_enabled=True, max_live_per_user=1000)
    # The scripts of these answers are no questions that people would share.
    monkeypatch.setattr(admission, "why_private", lambda text: None)
    monkeypatch.setattr(settings, "SEMCACHE_BUDGET_MS", 20_000)
    monkeypatch.setattr(flights, "STEP_WITHIN_S", PATIENCE_S)
    await run_in_db(only_rule)
    service.forget_rules()
    yield


def turn_of(user: User, text: str, **changes: Any) -> Turn:
    return Turn(caller_of_user(user), uuid4(), (Segment("user", text),), **changes)


async def read(turn: Turn, heard: Heard) -> Heard:
    async for event in reply(turn):
        match event:
            case Accepted():
                heard.accepted = event
            case Piece(text=text):
                heard.text += text
                heard.started.set()
            case Ended():
                heard.ended = event
    return heard


async def generated() -> int:
    return (await client().stats()).generated_tokens


async def aboard(num: int) -> CacheFlight:
    """The only flight, once so many wait for it."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            flight = await run_in_db(CacheFlight.objects.first)
            if flight is not None and len(flight.aboard) == num:
                return flight
            await asyncio.sleep(0.01)


def long_script() -> str:
    """Goes on for longer than it takes to say stop, also on a machine that stands still for a while."""
    return script_text(tokens=60, delay_ms=80)


async def both_reading(one: Socket, other: Socket, text: str) -> tuple[str, str]:
    """The generations of two sockets that follow the same answer, the leader's first."""
    leader = (await one.send(text))["generation"]
    await one.until("delta")
    follower = (await other.send(text))["generation"]
    await other.until("delta")
    assert (await aboard(2)).leader == UUID(leader)
    return leader, follower


@pytest_asyncio.fixture(loop_scope="package")
async def tabs(user: User, other_user: User) -> AsyncIterator[tuple[Socket, Socket]]:
    one, other = await open_socket(user), await open_socket(other_user)
    yield one, other
    await one.close()
    await other.close()


async def test_fifty_equal_questions_at_once_are_one_generation(user: User, other_user: User) -> None:
    """SC-11."""
    text = script_text(tokens=30, delay_ms=10, first_delay_ms=300)
    before = await generated()
    askers = [user, other_user] * 25
    heard = await asyncio.gather(*(read(turn_of(asker, text), Heard()) for asker in askers))
    assert await generated() - before == 30
    assert len({one.text for one in heard}) == 1 and heard[0].text
    origins = [one.ended.origin for one in heard if one.ended]
    assert (origins.count("model"), origins.count("exact")) == (1, 49)
    told = {one.accepted.cache_outcome for one in heard if one.accepted and one.accepted.cache_age_s == 0}
    assert told == {"hit-exact"}
    assert await run_in_db(CacheEntry.objects.count) == 1
    assert await run_in_db(CacheFlight.objects.count) == 0


async def test_a_follower_is_marked_and_keeps_text_and_ids_of_its_own(tabs: tuple[Socket, Socket]) -> None:
    one, other = tabs
    leader, follower = await both_reading(one, other, script_text(tokens=40, delay_ms=10))
    first = await one.until("done", generation=leader)
    second = await other.until("done", generation=follower)
    assert (first["origin"], second["origin"]) == ("model", "exact")
    assert (second["cache_age_s"], second["generated_tokens"]) == (0, 0)
    assert one.text_of(first) == other.text_of(second)
    row = await run_in_db(Generation.objects.select_related("message").get, pk=follower)
    assert row.message.text == other.text_of(second)
    assert len(row.message.token_ids) == 40


async def test_the_leaders_stop_takes_only_the_leader_off(tabs: tuple[Socket, Socket]) -> None:
    one, other = tabs
    leader, follower = await both_reading(one, other, long_script())
    await one.say("stop", generation=leader)
    assert (await one.until("done", generation=leader))["state"] == "stopped"
    done = await other.until("done", generation=follower)
    assert (done["state"], done["origin"]) == ("complete", "exact")
    entry = await run_in_db(CacheEntry.objects.get)
    assert entry.answer == other.text_of(done), "nobody stored what the leader no longer waited for"


async def test_a_followers_stop_ends_nothing_else(tabs: tuple[Socket, Socket]) -> None:
    one, other = tabs
    leader, follower = await both_reading(one, other, long_script())
    await other.say("stop", generation=follower)
    assert (await other.until("done", generation=follower))["state"] == "stopped"
    assert (await one.until("done", generation=leader))["state"] == "complete"


async def test_the_last_one_out_ends_the_generation(tabs: tuple[Socket, Socket]) -> None:
    one, other = tabs
    before = (await client().stats()).cancelled
    leader, follower = await both_reading(one, other, script_text(tokens=2000, delay_ms=20))
    await one.say("stop", generation=leader)
    await one.until("done", generation=leader)
    assert (await client().stats()).cancelled == before
    await other.say("stop", generation=follower)
    await other.until("done", generation=follower)
    assert (await client().stats()).cancelled == before + 1
    assert await run_in_db(CacheEntry.objects.count) == 0


async def test_a_reader_that_hangs_up_as_leader_leaves_the_answer_to_its_follower(
    user: User, other_user: User
) -> None:
    text = long_script()
    one, other = Heard(), Heard()
    leading = asyncio.create_task(read(turn_of(user, text), one))
    await one.started.wait()
    following = asyncio.create_task(read(turn_of(other_user, text), other))
    await other.started.wait()
    leading.cancel()
    await asyncio.gather(leading, return_exceptions=True)
    await following
    assert other.ended is not None and other.ended.state == "complete"


async def test_a_leader_that_fails_before_its_first_text_is_replaced_once(
    user: User, other_user: User
) -> None:
    """SC-11: nobody waits longer than one more run, and nobody hangs."""
    text = script_text(text="never seen", first_delay_ms=300, fail_after=0)
    heard = await asyncio.wait_for(
        asyncio.gather(*(read(turn_of(asker, text), Heard()) for asker in [user, other_user] * 4)), 20
    )
    assert {one.ended.state for one in heard if one.ended} == {"failed"}
    assert await run_in_db(CacheFlight.objects.count) == 0


async def test_a_leader_stopped_before_anybody_could_follow_is_replaced(
    user: User, other_user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = script_text(tokens=20, delay_ms=5)
    leader, other = turn_of(user, text), Heard()
    held = asyncio.Event()
    submit = type(client()).submit

    async def slow_submit(self: Any, request: Any) -> Any:
        if request.generation_id == str(leader.generation):
            await held.wait()
        return await submit(self, request)

    monkeypatch.setattr(type(client()), "submit", slow_submit)
    leading = asyncio.create_task(read(leader, Heard()))
    await aboard(1)
    following = asyncio.create_task(read(turn_of(other_user, text), other))
    await aboard(2)
    await stop(leader.generation)
    await asyncio.wait_for(following, PATIENCE_S)
    held.set()
    await leading
    assert other.ended is not None and (other.ended.state, other.ended.origin) == ("complete", "model")


async def test_a_follower_whose_process_gave_up_is_finished_by_another(tabs: tuple[Socket, Socket]) -> None:
    one, other = tabs
    leader, follower = await both_reading(one, other, script_text(tokens=80, delay_ms=20))
    await running().abandon(UUID(follower))
    adopter = Running()
    assert await adopt_orphans(adopter) == 1
    done = await other.until("done", generation=follower)
    assert (done["state"], done["origin"]) == ("complete", "exact")
    finished = await one.until("done", generation=leader)
    assert other.text_of(done) == one.text_of(finished)
    await adopter.drain(1)


async def test_nobody_follows_bulk_work_which_may_have_to_wait(user: User) -> None:
    text = script_text(tokens=30, delay_ms=20)
    before, bulk = await generated(), Heard()
    reading = asyncio.create_task(read(turn_of(user, text, is_offline=True), bulk))
    await bulk.started.wait()
    person = await read(turn_of(user, text), Heard())
    await reading
    assert person.text == bulk.text
    assert await generated() - before == 2 * 30
