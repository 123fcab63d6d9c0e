"""Stale while revalidating: past its time an answer is served as long as its rule says, marked, and made anew once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from semcache import tasks
from semcache.models import CacheComplaint, CacheEntry, CacheRule
from semcache.quality import complaints
from semcache.quality.complaints import Complaint, Served
from semcache.service import Answer, Hit, Outcome, Reason, forget_rules, refresh
from semcache.storage import store
from tests.semcache import factories
from tests.semcache.factories import all_alike, arule, ask
from tests.semcache.test_lifetime import DatabaseClock
from tests.semcache.test_store import scope

ASKED, REWORDED = "Which plans include backup?", "Which of the plans include a backup?"
OTHER = "Which cables do I need?"


@pytest.fixture
def clock(committed, monkeypatch) -> DatabaseClock:
    return DatabaseClock(monkeypatch, datetime(2026, 3, 4, 9, 0, tzinfo=UTC))


async def change(**changes: Any) -> None:
    await CacheRule.objects.aupdate(**changes)
    forget_rules()


async def hit_at(clock: DatabaseClock, second: float, text: str = ASKED) -> Hit | None:
    clock.set(second)
    return (await ask(text, all_alike)).hit


async def refreshed(hit: Hit, text: str = "new", **changes: Any) -> bool:
    values = {"entry_id": hit.entry_id, "created_at": hit.created_at, "model_revision": "small@1"} | changes
    return await sync_to_async(refresh)(
        **values, answer=Answer(text, is_complete=True, num_tokens=3, took_ms=40.0)
    )


@pytest.mark.parametrize("text", [ASKED, REWORDED])
@pytest.mark.parametrize("sharing", ["private", "public"])
async def test_within_the_window_it_is_served_and_says_so(clock, text, sharing):
    await arule(ttl_s=600, stale_s=300, sharing=sharing)
    await factories.store(ASKED, "old", all_alike)
    told = []
    for second in (599, 600, 899, 900):
        hit = await hit_at(clock, second, text)
        told.append(None if hit is None else (hit.is_stale, hit.age_s))
    assert told == [(False, 599), (True, 600), (True, 899), None]


async def test_a_stale_hit_is_explained_by_its_own_reason(clock):
    await arule(ttl_s=600, stale_s=300)
    await factories.store(ASKED, "old", all_alike)
    clock.set(700)
    exact, similar = await ask(ASKED, all_alike), await ask(REWORDED, all_alike)
    assert (exact.outcome, exact.reason) == (Outcome.HIT_EXACT, Reason.STALE)
    assert (similar.outcome, similar.reason) == (Outcome.HIT_SEMANTIC, Reason.STALE)


async def test_without_a_window_nothing_is_served_past_its_time(clock):
    await arule(ttl_s=600)
    await factories.store(ASKED, "old", all_alike)
    assert await hit_at(clock, 600) is None


async def test_a_changed_window_acts_on_stored_answers(clock):
    await arule(ttl_s=600, stale_s=300)
    await factories.store(ASKED, "old", all_alike)
    await change(stale_s=60)
    assert await hit_at(clock, 661) is None
    await change(stale_s=3600)
    assert (await hit_at(clock, 900)) is not None


async def test_the_window_begins_where_a_shortened_life_ends(clock):
    await arule(ttl_s=600, stale_s=60)
    await factories.store(ASKED, "old", all_alike)
    await change(ttl_s=100)
    told = [await hit_at(clock, second) for second in (99, 100, 159, 160, 599)]
    assert [hit and hit.is_stale for hit in told] == [False, True, True, None, None]


async def test_hits_prolong_neither_life_nor_window(clock):
    await arule(ttl_s=600, stale_s=300)
    await factories.store(ASKED, "old", all_alike)
    hits = [await hit_at(clock, second) is not None for second in range(0, 1501, 100)]
    assert hits == [True] * 9 + [False] * 7


async def test_the_rule_that_now_decides_may_shorten_the_window(clock):
    await arule(ttl_s=600, stale_s=300, priority=100)
    await factories.store(ASKED, "old", all_alike)
    await arule(ttl_s=600, stale_s=10, priority=1, keywords=["plans"])
    forget_rules()
    assert await hit_at(clock, 609) is not None
    assert await hit_at(clock, 610) is None


async def switched_off() -> None:
    """Another rule decides now, with the same window; the one that keeps the answer is off."""
    await change(mode="off", priority=200)
    await arule(ttl_s=600, stale_s=300, priority=1, sharing="public")
    forget_rules()


async def disabled() -> None:
    await change(is_enabled=False)
    await arule(ttl_s=600, stale_s=300, priority=1, sharing="public")
    forget_rules()


async def complained_of() -> None:
    """By somebody whose question was another one."""
    entry = await CacheEntry.objects.aget()
    served = Served(entry.pk, OTHER, "default", "user:2")
    assert await sync_to_async(complaints.complain)(served, Complaint.THUMBS_DOWN)
    assert await CacheEntry.objects.aexists()


async def from_the_future() -> None:
    in_a_day = datetime(2026, 3, 5, 9, 0, tzinfo=UTC)
    await CacheEntry.objects.aupdate(created_at=in_a_day, expires_at=in_a_day + timedelta(seconds=600))


async def brought_in() -> None:
    """Words that no model can make anew."""
    await CacheEntry.objects.all().adelete()
    row = {"question": ASKED, "answer": "old", "vector": (await all_alike([ASKED]))[0], "source": "import"}
    await sync_to_async(store.insert)(await new_entry(**row))


async def new_entry(**changes: Any) -> store.NewEntry:
    decision = await ask(ASKED, all_alike)
    assert decision.rule is not None
    values = {
        "scope": decision.scope, "prompt_sha256": decision.prompt_sha256, "rule_id": decision.rule.id,
        "sharing": "public", "tenant": "default", "owner": "user:1", "model_revision": "small@1",
        "embedder": "test-embedder", "generation": None, "token_ids": (), "tokenizer": "", "num_tokens": 0,
        "ttl_s": 600, "is_for_today": False,
    }  # fmt: skip
    return store.NewEntry(**(values | changes))


NEVER_STALE = [switched_off, disabled, complained_of, from_the_future, brought_in]


@pytest.mark.parametrize("happens", NEVER_STALE, ids=lambda happens: happens.__name__)
async def test_never_served_past_its_time(clock, happens: Callable[[], Any]):
    await arule(ttl_s=600, stale_s=300, sharing="public")
    await factories.store(ASKED, "old", all_alike)
    await happens()
    assert await hit_at(clock, 700) is None
    assert await hit_at(clock, 700, REWORDED) is None


@pytest.mark.parametrize("text", ["What is on the menu today?", "今天的菜单有哪些菜"])
async def test_what_is_said_of_today_ends_at_its_end(clock, text):
    await arule(ttl_s=600, stale_s=300)
    await factories.store(text, "Soup.")
    assert await hit_at(clock, 599, text) is not None
    assert await hit_at(clock, 600, text) is None


async def test_what_hangs_on_something_said_before_is_stale_for_its_own_words_only(clock):
    await arule(ttl_s=600, stale_s=300)
    await factories.store(ASKED, "old", all_alike)
    await CacheEntry.objects.aupdate(context=["I have a small shop."])
    assert await hit_at(clock, 700) is not None
    assert await hit_at(clock, 700, REWORDED) is None


async def test_the_fresh_answer_takes_the_place_of_the_stale_one(clock):
    await arule(ttl_s=600, stale_s=300)
    await factories.store(ASKED, "old", all_alike)
    before = await CacheEntry.objects.aget()
    stale = await hit_at(clock, 700, REWORDED)
    assert stale is not None and await refreshed(stale)
    fresh = await hit_at(clock, 1000, REWORDED)
    assert fresh is not None and (fresh.answer, fresh.is_stale, fresh.age_s) == ("new", False, 300)
    after = await CacheEntry.objects.aget()
    assert (after.pk, after.num_tokens, after.took_ms) == (before.pk, 3, 40.0)
    assert await hit_at(clock, 1299, ASKED) is not None


async def test_a_refresh_that_is_done_twice_counts_once(clock):
    await arule(ttl_s=600, stale_s=300)
    await factories.store(ASKED, "old", all_alike)
    stale = await hit_at(clock, 700)
    assert stale is not None and await refreshed(stale, "new")
    clock.set(750)
    assert not await refreshed(stale, "newer")
    fresh = await hit_at(clock, 760)
    assert fresh is not None and (fresh.answer, fresh.age_s) == ("new", 60)


async def evicted(stale: Hit) -> None:
    await CacheEntry.objects.all().adelete()


async def corrected(stale: Hit) -> None:
    await CacheEntry.objects.aupdate(answer="by hand", may_be_stale=False)


async def asked_afresh(stale: Hit) -> None:
    assert await factories.store(ASKED, "asked afresh", all_alike, may_read=False)


@pytest.mark.parametrize("meanwhile", [evicted, corrected, asked_afresh], ids=lambda one: one.__name__)
async def test_a_refresh_does_not_undo_what_was_done_meanwhile(clock, meanwhile):
    await arule(ttl_s=600, stale_s=300)
    await factories.store(ASKED, "old", all_alike)
    stale = await hit_at(clock, 700)
    assert stale is not None
    await meanwhile(stale)
    assert not await refreshed(stale)
    assert not await CacheEntry.objects.filter(answer="new").aexists()


REFUSAL = "I'm sorry, but I can't help with that."


@pytest.mark.parametrize("text", ["half", " ", REFUSAL])
async def test_only_a_whole_answer_that_says_something_replaces_a_stale_one(clock, text):
    answer = Answer(text, is_complete=text != "half")
    await arule(ttl_s=600, stale_s=300)
    await factories.store(ASKED, "old", all_alike)
    stale = await hit_at(clock, 700)
    assert stale is not None
    assert not await sync_to_async(refresh)(stale.entry_id, stale.created_at, "small@1", answer)


async def test_another_model_refreshes_nothing(clock):
    await arule(ttl_s=600, stale_s=300)
    await factories.store(ASKED, "old", all_alike)
    stale = await hit_at(clock, 700)
    assert stale is not None and not await refreshed(stale, model_revision="large@1")


async def test_a_complaint_of_the_answer_before_says_nothing_of_the_fresh_one(clock):
    await arule(ttl_s=600, stale_s=300, sharing="public")
    await factories.store(ASKED, "old", all_alike)
    await complained_of()
    await CacheComplaint.objects.aupdate(created_at=datetime(2026, 3, 4, 8, 59, tzinfo=UTC))
    assert await hit_at(clock, 700) is not None


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("changes", "stays"),
    [({}, True), ({"may_be_stale": False}, False), ({"expires_at": timedelta(seconds=-3700)}, False)],
    ids=["within", "of today", "past"],
)
def test_the_clean_up_waits_for_the_window(changes, stays):
    rule = factories.rule(ttl_s=60, stale_s=3600)
    now = timezone.now()
    ended = now + changes.pop("expires_at", timedelta(seconds=-60))
    factories.row(
        scope("a"), scope("x"), rule, created_at=now - timedelta(hours=3), expires_at=ended, **changes
    )
    assert tasks.expire_entries() == (0 if stays else 1)


@pytest.mark.django_db
@pytest.mark.parametrize("off", [{"mode": "off"}, {"mode": "shadow"}, {"is_enabled": False}])
def test_the_clean_up_does_not_wait_where_nothing_stale_is_served(off):
    rule = factories.rule(ttl_s=60, stale_s=3600, **off)
    long_ago = timezone.now() - timedelta(hours=3)
    factories.row(
        scope("a"), scope("x"), rule, created_at=long_ago, expires_at=long_ago + timedelta(minutes=1)
    )
    factories.row(
        scope("a"), scope("y"), rule, created_at=long_ago, expires_at=timezone.now() - timedelta(minutes=1)
    )
    assert tasks.expire_entries() == 2


# Each of these is a way to serve what must not be served; each must make one of the cases above fail.
LIVE_MUTANTS = [
    ("e.may_be_stale AND", "", brought_in),
    ("r.is_enabled AND", "", disabled),
    ("r.mode IN ('exact', 'semantic')", "true", switched_off),
    ("AND e.created_at <= statement_timestamp()", "", from_the_future),
]


@pytest.mark.parametrize(
    ("part", "instead", "happens"), LIVE_MUTANTS, ids=lambda one: getattr(one, "__name__", "")
)
async def test_a_window_that_forgot_a_condition_would_be_noticed(clock, part, instead, happens):
    clock.forget(part, instead)
    await arule(ttl_s=600, stale_s=300, sharing="public")
    await factories.store(ASKED, "old", all_alike)
    await happens()
    assert await hit_at(clock, 700) is not None


async def test_a_window_that_forgot_complaints_would_be_noticed(clock, monkeypatch):
    monkeypatch.setattr(store, "DOUBTED", store.DOUBTED + " AND false")
    await arule(ttl_s=600, stale_s=300, sharing="public")
    await factories.store(ASKED, "old", all_alike)
    await complained_of()
    assert await hit_at(clock, 700) is not None


@pytest.mark.parametrize("part", ["AND e.may_be_stale", "AND e.created_at = %(created_at)s"])
async def test_a_refresh_that_forgot_a_condition_would_be_noticed(clock, part):
    clock.forget(part, "")
    await arule(ttl_s=600, stale_s=300)
    await factories.store(ASKED, "old", all_alike)
    stale = await hit_at(clock, 700)
    assert stale is not None
    await (corrected if "stale" in part else asked_afresh)(stale)
    assert await refreshed(stale)
