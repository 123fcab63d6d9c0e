"""DB-01: the index over shared entries exists where there are many, is taken for big scopes only, and loses no row."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from django.core.management import call_command
from django.db import connection

from semcache import shared_index, store, tasks
from tests.semcache import factories
from tests.semcache.test_concurrent_eviction import at_once
from tests.semcache.test_store import scope

DIM = 32
NAME = shared_index.name_of(DIM)
FILL = """
INSERT INTO semcache_cacheentry (scope, prompt_sha256, question, answer, embedding, rule_id, sharing, tenant, owner,
       model_revision, embedder, token_ids, tokenizer, num_tokens, is_pinned, created_at, expires_at)
SELECT %(scope)s, encode(sha256((%(scope)s || n)::bytea), 'hex'), 'q' || n, 'a',
       (SELECT array_agg(random() - 0.5) FROM generate_series(1, %(dim)s) WHERE n > 0)::vector,
       %(rule)s, %(sharing)s, 't', 'o', 'r', 'test-embedder', '{}', '', 0, false,
       statement_timestamp() - interval '1 hour', statement_timestamp() + interval '1 day'
  FROM generate_series(1, %(count)s) n"""


@pytest.fixture
def rule(committed) -> Iterator[object]:
    yield factories.rule(ttl_s=86_400)
    with connection.cursor() as cursor:
        for name in shared_index._indexes(is_valid=True) + shared_index._indexes(is_valid=False):
            cursor.execute(f"DROP INDEX {name}")


def run(sql: str, values: dict[str, object] | None = None) -> list[tuple]:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return list(cursor.fetchall()) if cursor.description else []


def fill(rule, name: str, count: int, sharing: str = "public", dim: int = DIM) -> None:
    run(FILL, {"scope": scope(name), "rule": rule.pk, "count": count, "sharing": sharing, "dim": dim})


def indexes() -> set[str]:
    return {
        name
        for (name,) in run("SELECT indexname FROM pg_indexes WHERE indexname LIKE 'entry_shared_meaning%'")
    }


def values_for(name: str, vector: list[float]) -> dict[str, object]:
    return {"scope": scope(name), "embedder": "test-embedder", "vector": store.vector_text(vector), "ttl_s": 86_400,
            "stale_s": 0, "dim": len(vector), "limit": store.NUM_NEIGHBOURS}  # fmt: skip


def plan(statement: str, name: str) -> str:
    run("SET hnsw.iterative_scan = relaxed_order")
    lines = run("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) " + statement, values_for(name, [1.0] * DIM))
    return "\n".join(line for (line,) in lines)


def test_only_big_shared_scopes_are_searched_through_the_index(rule):
    fill(rule, "big", 6000)
    fill(rule, "small", 30)
    fill(rule, "private", 3000, sharing="private")
    assert shared_index.rebuild() == [NAME]
    (scan,) = [line for line in plan(store.NEAREST_SHARED, "big").splitlines() if NAME in line]
    # Without statistics on the vectors' size the planner took the same index and read all of it.
    assert "Index Scan" in scan and "actual rows=8." in scan
    assert NAME not in plan(store.NEAREST_SHARED, "small")
    assert NAME not in plan(store.NEAREST, "private")
    for name in ("small", "private"):
        assert "Seq Scan on semcache_cacheentry" not in plan(store.NEAREST_SHARED, name)


def test_a_small_scope_among_thousands_of_nearer_shared_rows_is_found_even_through_the_index(
    rule, monkeypatch
):
    """Without the iterative scan the index ends after 40 rows, all of other scopes: the same look-ups find nothing."""
    fill(rule, "big", 6000)
    fill(rule, "small", 60)
    shared_index.rebuild()
    run("SET enable_bitmapscan = off; SET enable_seqscan = off; SET enable_sort = off")
    try:
        chance = random.Random(7)
        missed, complete = 0, 0
        for _ in range(20):
            vector = [chance.gauss(0, 1) for _ in range(DIM)]
            found = store.find_nearest(scope("small"), "test-embedder", vector, 86_400, is_shared=True)
            exact = store.find_nearest(scope("small"), "test-embedder", vector, 86_400)
            complete += len(found) == store.NUM_NEIGHBOURS and found[0].entry_id == exact[0].entry_id
            assert [hit.similarity for hit in found] == sorted(
                (hit.similarity for hit in found), reverse=True
            )
        monkeypatch.setattr(store, "ITERATIVE", "SET LOCAL hnsw.iterative_scan = off")
        for _ in range(20):
            vector = [chance.gauss(0, 1) for _ in range(DIM)]
            found = store.find_nearest(scope("small"), "test-embedder", vector, 86_400, is_shared=True)
            missed += len(found) < store.NUM_NEIGHBOURS
    finally:
        run("RESET enable_bitmapscan; RESET enable_seqscan; RESET enable_sort")
    assert (complete, missed) == (20, 20)


def test_few_shared_rows_get_no_index_and_lose_the_one_they_had(rule):
    fill(rule, "big", shared_index.MIN_ROWS)
    fill(rule, "private", 100, sharing="private", dim=3)
    assert (tasks.rebuild_shared_index(), indexes()) == ([NAME], {NAME})
    run("DELETE FROM semcache_cacheentry WHERE id IN (SELECT id FROM semcache_cacheentry LIMIT 200)")
    assert (tasks.rebuild_shared_index(), indexes()) == ([], set())


def test_every_vector_size_has_its_own_index(rule, monkeypatch):
    monkeypatch.setattr(shared_index, "MIN_ROWS", 50)
    fill(rule, "one", 60)
    fill(rule, "two", 60, dim=7)
    names = {NAME, shared_index.name_of(7)}
    assert set(shared_index.rebuild()) == indexes() == names
    fill(rule, "three", 60, dim=9)  # the next look-up and the next insert meet no index of theirs
    assert len(store.find_nearest(scope("three"), "test-embedder", [0.1] * 9, 86_400, is_shared=True)) == 8


def test_a_rebuild_replaces_the_index_and_leaves_nothing_behind(rule, monkeypatch):
    monkeypatch.setattr(shared_index, "MIN_ROWS", 50)
    fill(rule, "big", 60)
    shared_index.rebuild()
    ((before,),) = run(f"SELECT relfilenode FROM pg_class WHERE relname = '{NAME}'")
    assert shared_index.rebuild() == [NAME]
    ((after,),) = run(f"SELECT relfilenode FROM pg_class WHERE relname = '{NAME}'")
    assert after != before
    assert indexes() == {NAME}
    assert run("SHOW statement_timeout") == [("5s",)]


@pytest.mark.parametrize("leftover", [NAME, f"{NAME}_ccnew", f"{NAME}_ccold1"])
def test_what_a_killed_rebuild_left_is_cleared_away(rule, monkeypatch, leftover):
    monkeypatch.setattr(shared_index, "MIN_ROWS", 50)
    fill(rule, "big", 60)
    run(shared_index.CREATE.format(name=leftover, dim=DIM))
    run(f"UPDATE pg_index SET indisvalid = false WHERE indexrelid = '{leftover}'::regclass")
    assert (shared_index.rebuild(), indexes()) == ([NAME], {NAME})


def test_while_one_worker_rebuilds_another_one_does_nothing(rule, monkeypatch):
    monkeypatch.setattr(shared_index, "MIN_ROWS", 50)
    fill(rule, "big", 60)
    with shared_index._alone() as is_first:
        assert is_first
        assert at_once(shared_index.rebuild) == [[]]
    assert indexes() == set()
    assert at_once(shared_index.rebuild) == [[NAME]]


def test_the_column_takes_any_size_and_going_back_keeps_what_fits(rule, monkeypatch):
    monkeypatch.setattr(shared_index, "MIN_ROWS", 50)
    fill(rule, "big", 60, dim=384)
    fill(rule, "other", 60)
    shared_index.rebuild()
    try:
        call_command("migrate", "semcache", "0004_flights", verbosity=0)
        sizes = run("SELECT vector_dims(embedding), count(*) FROM semcache_cacheentry GROUP BY 1 ORDER BY 1")
        assert (sizes, indexes()) == ([(384, 60), (None, 60)], set())
    finally:
        call_command("migrate", "semcache", verbosity=0)
    fill(rule, "more", 1)
