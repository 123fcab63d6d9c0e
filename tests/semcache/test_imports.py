"""Imported answers: stored once however often and by however many workers, and found like any other answer."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import connection
from django.utils import timezone

from semcache import service, tasks
from semcache.admin.export import as_jsonl, rows_of
from semcache.decision import Outcome
from semcache.imports import batches as imports
from semcache.imports import rows as import_rows
from semcache.imports.file import Row, read_rows
from semcache.imports.rows import Judged, Terms
from semcache.models import CacheEntry, CacheImport, CacheRule
from semcache.storage import store
from tests.semcache import factories
from tests.semcache.factories import all_alike

State = CacheImport.State


@pytest.fixture(autouse=True)
def rule(committed, settings, monkeypatch) -> CacheRule:
    """The only rule: everything, for everybody. Batches are small."""
    settings.SEMCACHE_ASKED_BY = "tests.semcache.lender.as_asked"
    settings.SEMCACHE_RUN_BY = ""
    monkeypatch.setattr(imports, "BATCH", 4)
    return factories.rule(name="Everything", sharing="public", ttl_s=86_400)


def begun(rule: CacheRule, num: int = 10, **terms: Any) -> CacheImport:
    rows = [Row(number, f"What is word{number}?", f"Answer {number}.") for number in range(num)]
    return started(rule, rows, **terms)


def started(rule: CacheRule, rows: list[Row], **terms: Any) -> CacheImport:
    on = Terms(rule.pk, **terms)
    judged = async_to_sync(import_rows.judged)(rows, on, with_vectors=False)
    return imports.start("answers.csv", judged, on)


def entries() -> list[tuple[str, str]]:
    return list(CacheEntry.objects.order_by("id").values_list("question", "answer"))


def expected(num: int = 10) -> list[tuple[str, str]]:
    return [(f"what is word{number}?", f"Answer {number}.") for number in range(num)]


def state(one: CacheImport) -> tuple[str, int, int]:
    one.refresh_from_db()
    return one.state, one.num_done, one.num_refused


def asked(text: str, **changes: Any) -> service.Decision:
    return async_to_sync(factories.ask)(text, all_alike, **changes)


def test_all_rows_are_stored_and_the_import_forgets_them(rule):
    one = begun(rule)
    assert state(one) == (State.WAITING, 0, 0)
    assert tasks.store_imports() == 10
    assert state(one) == (State.DONE, 10, 0)
    assert (one.rows, one.trouble) == ([], "") and one.ended_at is not None
    assert entries() == expected()
    assert tasks.store_imports() == 0


def test_anybody_finds_them_by_the_same_words_and_by_meaning(rule):
    started(rule, [Row(2, "How does one switch on two-step login?", "Like this.")])
    tasks.store_imports()
    for owner in ("user:1", "user:2"):
        exact = asked("How does one switch on two-step login?", owner=owner)
        near = asked("how does one switch on the two-step login ?", owner=owner)
        assert (exact.outcome, near.outcome) == (Outcome.HIT_EXACT, Outcome.HIT_SEMANTIC)
        assert exact.hit is not None and exact.hit.answer == "Like this."
    assert asked("How does one switch off two-step login?").hit is None


@pytest.mark.parametrize(
    ("sharing", "terms", "finders"),
    [
        ("tenant", {"tenant": "sales"}, {"sales"}),
        ("public", {"system_prompt": "Be brief."}, set()),
        ("public", {}, {"sales", "default"}),
    ],
)
def test_only_those_find_them_for_whom_they_are(rule, sharing, terms, finders):
    CacheRule.objects.update(sharing=sharing)
    service.forget_rules()
    started(rule, [Row(2, "What is rain?", "Water.")], **terms)
    tasks.store_imports()
    found = {tenant for tenant in ("sales", "default") if asked("What is rain?", tenant=tenant).hit}
    assert found == finders
    if "system_prompt" in terms:
        assert asked("What is rain?", system_prompt="Be brief.").hit is not None


def test_what_was_exported_is_brought_in_again_as_it_was(rule):
    texts = ["plain", '=HYPERLINK("x")\n今天', "第一行\r\n\u2028end", "\U0001f600 \u2028", "'quoted'"]
    started(rule, [Row(2, f"What is word{number}?", text) for number, text in enumerate(texts)])
    tasks.store_imports()
    before, file = entries(), as_jsonl(rows_of(CacheEntry.objects.all()))
    assert [answer for _, answer in before] == texts
    CacheEntry.objects.all().delete()
    started(rule, read_rows(file.encode()))
    tasks.store_imports()
    assert entries() == before


def test_texts_that_a_database_cannot_hold_are_cleaned(rule):
    started(rule, [Row(2, "What is\x00 rain \ud83d?", "Wa\x00ter \udc97.")])
    tasks.store_imports()
    assert entries() == [("what is rain \ufffd?", "Water \ufffd.")]


@pytest.mark.parametrize("at", [1, 6, 10])
def test_a_killed_worker_loses_and_doubles_nothing(rule, monkeypatch, at):
    one, insert, inserted = begun(rule), store.insert, []

    def dying(entry: store.NewEntry) -> int | None:
        inserted.append(entry)
        if len(inserted) == at:
            raise KeyboardInterrupt
        return insert(entry)

    monkeypatch.setattr(store, "insert", dying)
    with pytest.raises(KeyboardInterrupt):
        tasks.store_imports()
    assert len(entries()) % imports.BATCH == 0, "half a batch stands"
    monkeypatch.setattr(store, "insert", insert)
    tasks.store_imports()
    assert state(one) == (State.DONE, 10, 0)
    assert entries() == expected()


def test_a_batch_that_two_workers_have_in_hand_is_stored_by_one(rule, monkeypatch):
    one, put = begun(rule, 3), imports._store

    def twice(begun: CacheImport, found: list[Judged]) -> int:
        return put(begun, found) + put(begun, found)

    monkeypatch.setattr(imports, "_store", twice)
    assert tasks.store_imports() == 3
    assert state(one) == (State.DONE, 3, 0)


def test_a_mutant_whose_progress_does_not_see_the_others_would_be_noticed(rule, monkeypatch):
    one, put = begun(rule, 6), imports._store

    def blind(begun: CacheImport, found: list[Judged]) -> int:
        begun.refresh_from_db()
        return put(begun, found)

    def twice(begun: CacheImport, found: list[Judged]) -> int:
        return put(begun, found) + blind(begun, found)

    monkeypatch.setattr(imports, "_store", twice)
    tasks.store_imports()
    assert entries() != expected(6), "rows were counted that nobody stored"
    assert state(one)[0] == State.DONE


def test_several_workers_at_once_share_the_work(rule):
    one = begun(rule, 40)

    def work() -> None:
        tasks.store_imports()
        connection.close()

    workers = [threading.Thread(target=work) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    while tasks.store_imports():
        pass
    assert state(one) == (State.DONE, 40, 0)
    assert sorted(entries()) == sorted(expected(40))


def test_what_was_refused_at_the_start_is_counted_and_not_kept(rule):
    rows = [Row(2, "What is rain?", "Water."), Row(3, "", "x"), Row(4, "How do I reset my password?", "So.")]
    one = started(rule, rows)
    assert (one.num_rows, one.num_refused, one.rows) == (3, 2, [["What is rain?", "Water."]])
    tasks.store_imports()
    assert state(one) == (State.DONE, 1, 2)


def test_what_became_wrong_meanwhile_is_not_stored(rule):
    one = begun(rule, 6)
    async_to_sync(factories.store)("What is word4?", "Somebody's.", owner="user:3")
    factories.rule(name="Words", keywords=["word5"], priority=1)
    service.forget_rules()
    tasks.store_imports()
    assert state(one) == (State.DONE, 4, 2)
    assert ("what is word4?", "Somebody's.") in entries()


def test_an_engine_that_is_away_is_waited_for(rule, settings):
    one = begun(rule)
    settings.SEMCACHE_ASKED_BY = "tests.semcache.lender.nobody"
    assert tasks.store_imports() == 0
    assert state(one) == (State.WAITING, 0, 0) and "engine" in one.trouble
    settings.SEMCACHE_ASKED_BY = "tests.semcache.lender.as_asked"
    tasks.store_imports()
    assert state(one) == (State.DONE, 10, 0) and one.trouble == ""


def test_an_embedder_that_is_away_is_waited_for_a_day(rule, monkeypatch):
    one = begun(rule)
    monkeypatch.setattr(factories, "all_alike", factories.broken)
    tasks.store_imports()
    assert state(one)[0] == State.WAITING
    assert "the embedding lane is gone" in one.trouble
    CacheImport.objects.update(created_at=timezone.now() - timedelta(days=2))
    tasks.store_imports()
    assert state(one) == (State.FAILED, 0, 0)
    assert one.rows == [] and "the embedding lane is gone" in one.trouble


def test_an_import_that_can_not_go_on_says_why_and_holds_up_no_other(rule, monkeypatch):
    bad, good, judge = begun(rule, 2), started(rule, [Row(2, "What is rain?", "Water.")]), imports.judged

    async def picky(rows: list[Row], terms: Terms) -> list[Judged]:
        if "word" in rows[0].question:
            raise ValueError("these vectors have no direction")
        return await judge(rows, terms)

    monkeypatch.setattr(imports, "judged", picky)
    tasks.store_imports()
    assert state(bad) == (State.FAILED, 0, 0)
    assert (bad.rows, bad.trouble) == ([], "ValueError: these vectors have no direction")
    assert state(good) == (State.DONE, 1, 0)


def test_a_rule_that_is_deleted_takes_its_imports_along(rule):
    begun(rule)
    rule.delete()
    assert tasks.store_imports() == 0
    assert entries() == []


def test_old_imports_are_forgotten_and_unfinished_ones_are_not(rule, monkeypatch):
    monkeypatch.setattr(imports, "KEPT", 2)
    begun(rule, 1)
    tasks.store_imports()
    waiting = begun(rule, 2)
    begun(rule, 3)
    begun(rule, 4)
    left = set(CacheImport.objects.values_list("num_rows", flat=True))
    assert left == {2, 3, 4} and waiting.pk in imports.unfinished()


def test_an_import_of_nothing_but_refused_rows_ends(rule):
    one = started(rule, [Row(2, "", "x")])
    tasks.store_imports()
    assert state(one) == (State.DONE, 0, 1)
