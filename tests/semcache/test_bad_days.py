"""An operator's bad days: broken rows, a slow database, absurd texts. The cache steps aside and comes back."""

from __future__ import annotations

import logging

import pytest
from asgiref.sync import sync_to_async
from django.db import connection

from semcache import process
from semcache.breaker import Breaker
from semcache.models import CacheEntry
from semcache.service import Outcome, Reason
from semcache.storage import store
from tests.semcache import factories
from tests.semcache.factories import all_alike, all_apart, ask

pytestmark = pytest.mark.usefixtures("committed")

BREAKAGES = {
    "token ids without a number": "token_ids = '{1,NULL}'",
    "token ids in rows": "token_ids = '{{1,2},{3,4}}'",
    "a blank answer": "answer = ' '",
    "a vector without direction": "embedding = array_fill(0, ARRAY[384])::vector",
}


def break_rows(breakage: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE semcache_cacheentry SET {breakage}")


@pytest.mark.parametrize("breakage", BREAKAGES.values(), ids=BREAKAGES)
async def test_a_row_written_past_the_cache_is_skipped_with_one_line_and_hides_nothing(breakage, caplog):
    await factories.arule()
    await factories.store("Which plans include backup?", "broken", all_alike)
    await sync_to_async(break_rows)(breakage)
    await factories.store("Which of the plans include a backup?", "whole", all_alike, may_read=False)
    with caplog.at_level(logging.WARNING, "semcache"):
        for _ in range(3):
            hit = (await ask("Which plans include a backup?", all_alike)).hit
            assert hit is not None and hit.answer == "whole"
    assert len(caplog.records) == 1


async def test_a_question_replaces_its_own_broken_row():
    await factories.arule()
    await factories.store("Describe rain.", "broken")
    await sync_to_async(break_rows)("answer = ' '")
    assert (await ask("Describe rain.")).outcome is Outcome.MISS
    await factories.store("Describe rain.", "Wet.")
    assert (await ask("Describe rain.")).outcome is Outcome.HIT_EXACT
    assert await CacheEntry.objects.acount() == 1


async def test_a_slow_database_costs_its_budget_then_nothing_and_is_asked_again_after_a_rest(
    monkeypatch, settings
):
    now = [0.0]
    monkeypatch.setattr(process, "store_breaker", Breaker(max_failures=2, rest_s=10.0, clock=lambda: now[0]))
    await factories.arule()
    await factories.store("Describe rain.", "Wet.")
    await ask("Describe rain.")  # the rules are read
    with monkeypatch.context() as patch:
        slow = store.EXACT + " AND (SELECT pg_sleep(1) IS NOT NULL)"
        patch.setattr(store, "EXACT", slow)
        settings.SEMCACHE_BUDGET_MS = 50
        reasons = [(await ask("Describe rain.")).reason for _ in range(3)]
    assert reasons == [Reason.TIMEOUT, Reason.TIMEOUT, Reason.RESTING]
    settings.SEMCACHE_BUDGET_MS = 30_000
    assert (await ask("Describe rain.")).reason is Reason.RESTING
    now[0] = 10.0
    assert (await ask("Describe rain.")).outcome is Outcome.HIT_EXACT
    assert process.store_breaker.allows()


@pytest.mark.parametrize(
    "text",
    [
        "How do I say 天气 and погода in English?",
        "Ünïcode\x00 rain 今天",
        "🌧️ rain? دمطر",
        "rain\u202e evil\u2066",
    ],
)
async def test_mixed_languages_and_odd_characters_are_stored_and_found(text):
    await factories.arule()
    assert await factories.store(text, "an answer \x00 of \ud83c mixed 文字", all_apart) is not None
    hit = (await ask(text)).hit
    assert hit is not None and hit.answer == "an answer  of \ufffd mixed 文字"


async def test_a_question_of_a_megabyte_is_answered_without_the_embedder_and_not_stored():
    async def never(texts: list[str]):
        raise AssertionError("nobody embeds a megabyte")

    await factories.arule()
    text = "rain 雨 " * 150_000
    assert (await ask(text, never)).outcome is Outcome.MISS
    assert await factories.store(text, "Wet.", never) is None
    assert await factories.store("Describe rain.", "w" * 1_000_000) is None
    assert await CacheEntry.objects.acount() == 0
