"""The ledger and the engine's own counters agree: every token and every second is in some row, and in one only.

With the real engine and a tiny random model, so that nothing of it is scripted.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import pytest
import pytest_asyncio
from django.conf import settings
from django.db.models import Q, Sum
from django.utils import timezone

from chatsite.accounts.callers import caller_of_user
from chatsite.accounts.ledger import booking
from chatsite.accounts.models import Price, UsageRecord, User
from chatsite.chat import again, again_asked, erasure, flight, owed
from chatsite.chat.adoption import reap
from chatsite.chat.embedding import embed
from chatsite.chat.ending import stop
from chatsite.chat.models import Generation
from chatsite.chat.running import running
from chatsite.chat.turn import CacheControl, Turn
from chatsite.db import run_in_db
from chatsite.engines import close_engines
from inference.errors import GenerationUnknown
from inference.testing import EngineProcess
from inference.types import Done, EngineStats, Sampling
from semcache import flights, service
from semcache.models import CacheEntry, CacheFlight, CacheRule
from tests.chat.again_site import age
from tests.chat.broker import Broker
from tests.chat.conftest import open_socket
from tests.chat.only_engine import client
from tests.chat.test_cache_flight import Heard, read, turn_of
from tests.patience import PATIENCE_S

SUMS = (
    "prompt_tokens",
    "reused_tokens",
    "prefilled_tokens",
    "generated_tokens",
    "unseen_tokens",
    "device_seconds",
)
REUSED = [f"reused_{source}_tokens" for source in ("head", "prefix", "shared", "disk")]
FRESH = CacheControl(may_read=False, may_store=False)
# A random model never ends by itself; a letter that comes soon ends it, so that its answer may be stored.
ENDED = Sampling(temperature=0.0, max_tokens=60, stop=("e", "a", "i", "o", "n", "t", "s", "r"))
HOUR = timedelta(hours=1)
# Nobody waits long for the end, and everybody can leave or be stopped before it.
MOST_TOKENS = 700
LONG = Sampling(temperature=0.0, max_tokens=MOST_TOKENS)


@pytest_asyncio.fixture(scope="module", loop_scope="package")
async def real_engine(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[EngineProcess]:
    from inference.models.tiny import write_tiny_embedder, write_tiny_model

    folder = tmp_path_factory.mktemp("ledger")
    model, embedder = write_tiny_model(folder / "tiny"), write_tiny_embedder(folder / "embedder")
    address = f"unix:{folder}/engine.sock"
    argv = [sys.executable, "-m", "inference", "--address", address, "--model", str(model)]
    argv += ["--embed-model", str(embedder), "--threads", "1", "--kv-memory-mb", "16", "--max-batch", "4"]
    argv += ["--repetition-tokens", "0", "--probe-interval-s", "0.5", "--max-output-tokens", str(MOST_TOKENS)]
    engine = EngineProcess(address, argv, start_timeout_s=PATIENCE_S)
    await engine.start()
    yield engine
    await engine.stop()


@pytest_asyncio.fixture(loop_scope="package")
async def site(
    real_engine: EngineProcess, clean: None, config: Any, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[None]:
    """One rule that stores and serves equal questions, also for a time after their end."""

    def rows() -> None:
        CacheRule.objects.all().delete()
        CacheFlight.objects.all().delete()
        CacheRule.objects.create(name="everything", mode="exact", sharing="private", ttl_s=60, stale_s=3600)
        Price.objects.create(model="*", per_million_generated=1, per_device_hour=3600)

    config(
        engine_address=real_engine.address,
        checkpoint_s=0.05,
        lease_s=0.5,
        max_live_per_user=1000,
        cache_enabled=True,
    )
    monkeypatch.setattr(settings, "SEMCACHE_BUDGET_MS", 20_000)
    monkeypatch.setattr(flights, "STEP_WITHIN_S", PATIENCE_S)
    monkeypatch.setattr(again_asked, "SENT_WITHIN_S", PATIENCE_S)
    monkeypatch.setattr(owed, "ON_ITS_WAY", timedelta(0))
    await close_engines()
    await run_in_db(rows)
    service.forget_rules()
    yield
    await again_asked.all_sent()


async def idle_stats() -> EngineStats:
    """Numbers with nothing under way, also no probe."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            stats = await client().stats()
            if not stats.running and not stats.waiting:
                return stats
            await asyncio.sleep(0.02)


def counted(before: EngineStats, after: EngineStats) -> dict[str, float]:
    """What the engine counted for those who asked."""

    def grown(*names: str) -> float:
        return float(sum(getattr(after, name) - getattr(before, name) for name in names))

    return {
        name: grown(*(REUSED if name == "reused_tokens" else [name])) - grown(f"background_{name}")
        for name in (
            "prompt_tokens",
            "reused_tokens",
            "prefilled_tokens",
            "generated_tokens",
            "device_seconds",
        )
    }


def booked() -> dict[str, float]:
    answers = UsageRecord.objects.filter(kind="answer")
    sums = answers.aggregate(**{name: Sum(name, default=0) for name in SUMS})
    return sums | {"generated_tokens": sums["generated_tokens"] + sums.pop("unseen_tokens")}


async def balance(before: EngineStats) -> None:
    """Nothing is owed any more, and the books agree."""
    await running().drain(5)
    async with asyncio.timeout(PATIENCE_S):
        while await run_in_db(UsageRecord.objects.filter(is_owed=True).exists):
            await owed.settle_owed()
            await asyncio.sleep(0.05)
    assert await run_in_db(booked) == pytest.approx(counted(before, await idle_stats()))


async def begun(turn: Turn) -> asyncio.Task[Heard]:
    """A reader that has seen a first piece."""
    heard = Heard()
    reader = asyncio.create_task(read(turn, heard))
    await asyncio.wait_for(heard.started.wait(), PATIENCE_S)
    return reader


async def stored_and_found_again(user: User, broker: Broker) -> None:
    """Whole, an exact hit, a stale hit, and the answer that is made anew for it behind the scenes."""
    told = [await read(turn_of(user, "Tell me about rivers", sampling=ENDED), Heard()) for _ in range(2)]
    await run_in_db(age, await run_in_db(CacheEntry.objects.get))
    told.append(await read(turn_of(user, "Tell me about rivers", sampling=ENDED), Heard()))
    await again_asked.all_sent()
    assert [one.ended.origin for one in told if one.ended] == ["model", "exact", "exact"]
    assert await again.make(broker.orders[0])


async def two_choices(user: User) -> None:
    turns = [turn_of(user, "Two of you", sampling=ENDED, cache=FRESH) for _ in range(2)]
    await asyncio.gather(*(read(turn, Heard()) for turn in turns))


async def asked_by_many(user: User) -> Turn:
    """The leader of those who ask the same leaves in the middle; it goes on for the others."""
    leader = turn_of(user, "What all ask", sampling=LONG)
    leading = await begun(leader)
    following = [await begun(turn_of(user, "What all ask", sampling=LONG)) for _ in range(2)]
    leading.cancel()
    await asyncio.gather(*following)
    return leader


async def stopped_in_many_ways(user: User, config: Any) -> None:
    """By its reader who leaves, by a click, while it waits for a seat, by its deadline, by the reaper."""
    left = await begun(turn_of(user, "One that leaves", sampling=LONG, cache=FRESH))
    left.cancel()
    many = [turn_of(user, f"Question {number}", sampling=LONG, cache=FRESH) for number in range(7)]
    reading = [asyncio.create_task(read(turn, Heard())) for turn in many]
    await asyncio.sleep(0.3)
    for turn in many:
        await stop(turn.generation)
    late = await begun(turn_of(user, "One that takes too long", sampling=LONG, cache=FRESH))
    await run_in_db(Generation.objects.filter(state="running").update, deadline_at=timezone.now() - HOUR)
    assert await reap() == 1
    await asyncio.gather(left, late, *reading, return_exceptions=True)
    config(deadline_s=0.5)
    await read(turn_of(user, "One more that takes too long", sampling=LONG, cache=FRESH), Heard())
    config(deadline_s=600.0)


async def in_conversations(user: User) -> None:
    """A turn, the next one that reuses it, the same asked again, and a conversation that is erased in mid-answer."""
    tab = await open_socket(user)
    accepted, _ = await tab.ask("A first turn")
    await tab.ask("A second turn", conversation=accepted["conversation"], parent=accepted["answer"])
    await tab.say("regenerate", client_message_id=uuid4(), message=accepted["answer"])
    again_accepted = await tab.until("accepted")
    await tab.until("done", generation=again_accepted["generation"])
    erased = await tab.send("To be erased")
    await tab.until("delta")
    await erasure.erase(caller_of_user(user), UUID(erased["conversation"]))
    await tab.close()


async def test_the_rows_add_up_to_what_the_engine_counted(
    site: None, user: User, broker: Broker, config: Any
) -> None:
    before = await idle_stats()
    await stored_and_found_again(user, broker)
    await two_choices(user)
    leader = await asked_by_many(user)
    await stopped_in_many_ways(user, config)
    await in_conversations(user)
    made = await embed(caller_of_user(user), ["a text", "another"])
    await balance(before)

    def look() -> None:
        rows = UsageRecord.objects.filter(kind="answer")
        assert rows.get(generation=leader.generation).generated_tokens > 500
        assert set(rows.values_list("state", flat=True)) == {"complete", "stopped", "failed"}
        house = rows.get(user=None)
        assert (house.origin, house.tenant_id, house.generated_tokens > 0) == ("again", user.tenant_id, True)
        hits = rows.exclude(origin__in=("model", "again"))
        assert hits.count() == 4 and not hits.filter(Q(cost__gt=0) | Q(device_seconds__gt=0)).exists()
        assert all(hit.saved_tokens and hit.saved_ms and hit.saved_cost for hit in hits)
        for row in rows.filter(generated_tokens__gt=0):
            tokens = Decimal(row.generated_tokens) / 1_000_000
            assert row.cost == (tokens + Decimal(repr(row.device_seconds))).quantize(Decimal("1e-9"))
        vectors = UsageRecord.objects.get(kind="embedding")
        assert (vectors.prompt_tokens, vectors.user_id) == (made[0].num_tokens, user.pk)

    await run_in_db(look)


@pytest.mark.parametrize("hole", ["followers", "owed", "again", "erased"])
async def test_books_with_a_hole_do_not_balance(
    site: None, user: User, broker: Broker, monkeypatch: pytest.MonkeyPatch, hole: str
) -> None:
    before = await idle_stats()
    match hole:
        case "followers":  # they pay for what the leader pays for
            monkeypatch.setattr(flight, "as_follower", lambda ended_as: ended_as)
            await asked_by_many(user)
        case "owed":  # what ended without the engine's last word stays without it
            monkeypatch.setattr(owed, "_last_word", unknown)
            await asked_by_many(user)
        case "again":  # what is made behind the scenes is nobody's
            monkeypatch.setattr(booking, "open_again", lambda *args: None)
            await stored_and_found_again(user, broker)
        case "erased":  # what is erased in mid-answer is forgotten
            monkeypatch.setattr(booking, "book_unfinished", lambda erased: None)
            await in_conversations(user)
    with pytest.raises(AssertionError):
        await balance(before)


async def unknown(generation: UUID) -> Done:
    raise GenerationUnknown("no log under that id")
