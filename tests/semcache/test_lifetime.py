"""SC-06, DB-04: time to live is absolute, by the database's clock, whatever the zone; an edited rule changes it,
midnight and a date in the future end it.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.db import connection
from django.utils import timezone

from semcache.models import CacheEntry, CacheRule
from semcache.service import Outcome, forget_rules
from semcache.storage import store
from tests.semcache import factories
from tests.semcache.factories import all_alike, ask

QUESTION = "What is the weather in Bergen?"


class DatabaseClock:
    """Stands in for the database's clock in the cache's statements, so that time moves only by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, start: datetime) -> None:
        self._monkeypatch = monkeypatch
        self._texts = {
            name: getattr(store, name) for name in ("EXACT", "NEAREST", "NEAREST_SHARED", "INSERT", "REFRESH")
        }
        self._start = start
        self.set(0)

    def forget(self, part: str, instead: str) -> None:
        """Leave a part out of the statements that have it; at least one must."""
        before = dict(self._texts)
        self._texts = {name: text.replace(part, instead) for name, text in before.items()}
        assert self._texts != before
        self.set(0)

    def set(self, seconds: float) -> None:
        now = (self._start + timedelta(seconds=seconds)).isoformat()
        for name, text in self._texts.items():
            self._monkeypatch.setattr(
                store, name, text.replace("statement_timestamp()", f"timestamptz '{now}'")
            )


@pytest.fixture
def clock(committed, monkeypatch) -> DatabaseClock:
    return DatabaseClock(monkeypatch, datetime(2026, 3, 4, 9, 0, tzinfo=UTC))


async def test_a_hit_one_second_before_the_end_and_none_at_it(clock):
    factories_rule = await CacheRule.objects.acreate(name="weather", ttl_s=600)
    await factories.store(QUESTION, "Rain.")
    for second, is_hit in ((599, True), (600, False), (601, False)):
        clock.set(second)
        assert ((await ask(QUESTION)).hit is not None) is is_hit, second
        assert ((await ask("What's the weather in Bergen?", all_alike)).hit is not None) is False
    assert factories_rule.ttl_s == 600


async def test_hits_do_not_prolong_a_life(clock):
    await CacheRule.objects.acreate(name="weather", ttl_s=600)
    await factories.store(QUESTION, "Rain.")
    hits = []
    for second in range(0, 1501, 100):
        clock.set(second)
        hits.append((await ask(QUESTION)).hit is not None)
    assert hits == [True] * 6 + [False] * 10


async def test_an_expired_best_match_does_not_hide_a_living_second_best(clock):
    await CacheRule.objects.acreate(name="weather", ttl_s=600)
    await factories.store("Which plans include backup?", "old", all_alike)
    clock.set(500)
    await factories.store("Which of the plans include a backup?", "new", all_alike, may_read=False)
    clock.set(700)
    decision = await ask("Which plans include backup?", all_alike)
    assert decision.hit is not None and decision.hit.answer == "new"
    assert len(decision.candidates) == 1


async def test_a_shorter_life_of_the_rule_acts_on_stored_answers(clock):
    rule = await CacheRule.objects.acreate(name="weather", ttl_s=600)
    await factories.store(QUESTION, "Rain.", all_alike)
    clock.set(100)
    assert (await ask(QUESTION)).hit is not None
    rule.ttl_s = 60
    await rule.asave()
    forget_rules()
    assert (await ask(QUESTION)).hit is None
    assert (await ask("what's the weather in Bergen?", all_alike)).hit is None


async def test_a_longer_life_of_the_rule_does_not_revive_stored_answers(clock):
    rule = await CacheRule.objects.acreate(name="weather", ttl_s=60)
    await factories.store(QUESTION, "Rain.")
    rule.ttl_s = 600
    await rule.asave()
    forget_rules()
    clock.set(61)
    assert (await ask(QUESTION)).hit is None


async def test_a_new_rule_with_a_shorter_life_acts_on_what_another_rule_stored(clock):
    await CacheRule.objects.acreate(name="everything", ttl_s=86_400, priority=100)
    await factories.store(QUESTION, "Rain.")
    await CacheRule.objects.acreate(name="weather", keywords=["weather"], ttl_s=60, priority=1)
    forget_rules()
    clock.set(61)
    assert (await ask(QUESTION)).hit is None


async def test_an_entry_from_the_future_is_never_served_and_is_replaced(clock):
    await CacheRule.objects.acreate(name="weather", ttl_s=600)
    clock.set(86_400)
    await factories.store("Which plans include backup?", "from tomorrow", all_alike)
    clock.set(0)
    assert (await ask("Which plans include backup?", all_alike)).outcome is Outcome.MISS
    assert (await ask("Which of the plans include a backup?", all_alike)).outcome is Outcome.MISS
    assert await factories.store("Which plans include backup?", "of now", all_alike) is not None
    hit = (await ask("Which plans include backup?")).hit
    assert hit is not None and hit.answer == "of now"


async def test_an_older_answer_never_replaces_a_younger_one(clock):
    await CacheRule.objects.acreate(name="weather", ttl_s=600)
    await factories.store(QUESTION, "young", may_read=False)
    assert await factories.store(QUESTION, "no younger", may_read=False) is None
    clock.set(1)
    assert await factories.store(QUESTION, "younger", may_read=False) is not None
    hit = (await ask(QUESTION)).hit
    assert hit is not None and hit.answer == "younger"


@pytest.mark.parametrize("of_staff", [{"is_pinned": True}, {"source": CacheEntry.Source.IMPORT}])
async def test_what_staff_pinned_or_brought_in_stays_until_it_ends_whoever_asks_afresh(clock, of_staff):
    await CacheRule.objects.acreate(name="weather", ttl_s=600)
    await factories.store(QUESTION, "of staff", may_read=False)
    await CacheEntry.objects.aupdate(**of_staff)
    clock.set(1)
    assert await factories.store(QUESTION, "of somebody", may_read=False) is None
    hit = (await ask(QUESTION)).hit
    assert hit is not None and hit.answer == "of staff"
    clock.set(601)
    assert await factories.store(QUESTION, "of somebody", may_read=False) is not None


@pytest.mark.parametrize("zone", ["Asia/Shanghai", "UTC", "America/New_York"])
@pytest.mark.parametrize("text", ["What is on the menu today?", "今天的菜单有哪些菜"])
async def test_an_answer_about_today_ends_with_the_day_of_the_site(
    committed, monkeypatch, settings, zone, text
):
    settings.TIME_ZONE = zone
    late = datetime(2026, 3, 4, 23, 58, tzinfo=ZoneInfo(zone))
    clock = DatabaseClock(monkeypatch, late)
    await CacheRule.objects.acreate(name="menu", ttl_s=86_400)
    with timezone.override(zone):
        await factories.store(text, "Soup.")
    clock.set(119)
    assert (await ask(text)).hit is not None
    clock.set(121)
    assert (await ask(text)).hit is None
    clock.set(300)
    assert (await ask(text)).hit is None


# Some change their clocks at midnight, so that it comes twice (Havana, Azores) or not at all (Cairo, Beirut, Santiago).
ZONES = (
    "UTC", "Asia/Shanghai", "Asia/Kathmandu", "Europe/Berlin", "America/New_York", "America/Havana", "Atlantic/Azores",
    "Africa/Cairo", "Asia/Beirut", "America/Santiago", "America/Asuncion", "Australia/Lord_Howe", "Pacific/Apia",
)  # fmt: skip


def ends_of_days(sql: str, zone: str) -> list[tuple[datetime, datetime]]:
    """(end by the statement's words, true end) of every day of two years, asked at noon."""
    place = ZoneInfo(zone)
    noons = [datetime(2023, 1, 1, 12, tzinfo=place) + timedelta(days=day) for day in range(730)]
    sql = sql.replace("statement_timestamp()", "noon").replace("%(zone)s", "%(zone)s::text")
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {sql} FROM unnest(%(noons)s::timestamptz[]) AS noon", {"noons": noons, "zone": zone}
        )
        said = [end for (end,) in cursor.fetchall()]
    return [(end, true_end(noon, place)) for end, noon in zip(said, noons, strict=True)]


def true_end(noon: datetime, place: ZoneInfo) -> datetime:
    """The first moment of which the clocks there say another day."""
    moment = noon.astimezone(UTC) + timedelta(hours=10)
    while moment.astimezone(place).date() == noon.date():
        moment += timedelta(minutes=15)
    return moment


@pytest.mark.django_db
@pytest.mark.parametrize("zone", ZONES)
def test_today_ends_at_the_first_moment_of_the_next_day_whatever_the_clocks_do(zone):
    assert [(said, true) for said, true in ends_of_days(store.END_OF_DAY, zone) if said != true] == []


async def test_where_midnight_comes_twice_an_answer_about_today_ends_at_the_first(
    committed, monkeypatch, settings
):
    settings.TIME_ZONE = "America/Havana"
    clock = DatabaseClock(monkeypatch, datetime(2026, 10, 31, 23, 59, tzinfo=ZoneInfo("America/Havana")))
    await CacheRule.objects.acreate(name="menu", ttl_s=86_400)
    with timezone.override("America/Havana"):
        await factories.store("What is on the menu today?", "Soup.")
    assert (await ask("What is on the menu today?")).hit is not None
    clock.set(61)
    assert (await ask("What is on the menu today?")).hit is None


@pytest.mark.parametrize("zone", ["Asia/Shanghai", "UTC", "America/New_York"])
async def test_a_life_across_the_clock_change_is_counted_in_real_seconds(
    committed, monkeypatch, settings, zone
):
    settings.TIME_ZONE = zone
    before_the_change = datetime(2026, 11, 1, 1, 50, tzinfo=ZoneInfo("America/New_York"))
    clock = DatabaseClock(monkeypatch, before_the_change.astimezone(UTC))
    await CacheRule.objects.acreate(name="weather", ttl_s=600)
    await factories.store("Which plans include backup?", "Both.")
    clock.set(5 * 60)
    assert (await ask("Which plans include backup?")).hit is not None
    clock.set(15 * 60)
    assert (await ask("Which plans include backup?")).hit is None
    entry = await CacheEntry.objects.aget()
    assert entry.expires_at - entry.created_at == timedelta(seconds=600)


@pytest.mark.parametrize("text", ["What time is it?", "现在几点了"])
async def test_what_is_true_for_a_moment_is_never_cached(clock, text):
    await CacheRule.objects.acreate(name="all")
    assert await factories.store(text, "Noon.") is None
    assert (await ask(text)).outcome is Outcome.BYPASS
