"""DB-01: the index over shared entries exists where there are many, is taken for big scopes only, and loses no row."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import partial

import pytest
from django.core.management import call_command
from django.db import connection

from semcache import tasks
from semcache.storage import shared_index, store
from tests.semcache import factories
from tests.semcache.test_concurrent_eviction import at_once
from tests.semcache.test_store import scope

DIM = 32
NAME = shared_index.name_of(DIM)
HALF = shared_index.half_name_of(DIM)
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
        off = store.BEFORE_SHARED.replace("relaxed_order", "off")
        monkeypatch.setattr(store, "BEFORE_SHARED", off)
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


@pytest.mark.parametrize(
    "leftover", [NAME, f"{NAME}_ccnew", f"{NAME}_ccold1", f"{NAME}_half", f"{NAME}_half_ccnew"]
)
def test_what_a_killed_rebuild_left_is_cleared_away(rule, monkeypatch, leftover):
    monkeypatch.setattr(shared_index, "MIN_ROWS", 50)
    fill(rule, "big", 60)
    run(shared_index.CREATE.format(name=leftover, dim=DIM, type="vector"))
    run(f"UPDATE pg_index SET indisvalid = false WHERE indexrelid = '{leftover}'::regclass")
    assert (shared_index.rebuild(), indexes()) == ([NAME], {NAME})


def statement_of(name: str) -> str:
    """What a look-up in this shared scope asks the database."""
    asked = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(store, "_fetch", lambda sql, values: asked.append(sql) or [])
        store.find_nearest(scope(name), "test-embedder", [1.0] * DIM, 86_400, is_shared=True)
    return asked[0]


def test_above_a_number_of_rows_look_ups_take_an_index_of_halved_numbers_that_finds_the_same(
    rule, monkeypatch
):
    fill(rule, "big", 6000)
    chance, recall = random.Random(3), {}
    texts = [text for (text,) in run("SELECT embedding::text FROM semcache_cacheentry ORDER BY id LIMIT 20")]
    # Close to a stored question, as a cache gets them, and anywhere.
    near = [[float(number) + chance.gauss(0, 0.02) for number in text[1:-1].split(",")] for text in texts]
    far = [[chance.gauss(0, 1) for _ in range(DIM)] for _ in range(20)]
    best, exact = [ids[0] for ids in found(near, is_shared=False)], found(far, is_shared=False)
    for most, name in ((6000, NAME), (5999, HALF)):
        monkeypatch.setattr(shared_index, "MAX_VECTOR_ROWS", most)
        assert (shared_index.rebuild(), indexes()) == ([name], {name})
        statement = statement_of("big")
        (scan,) = [line for line in plan(statement, "big").splitlines() if NAME in line]
        assert f"Index Scan using {name} " in scan and "actual rows=8." in scan
        # Not word for word that of the index: every row is read.
        (other,) = {store.NEAREST_SHARED, store.NEAREST_SHARED_HALF} - {statement}
        assert NAME not in plan(other, "big")
        assert [ids[0] for ids in found(near, is_shared=True)] == best
        pairs = zip(found(far, is_shared=True), exact, strict=True)
        recall[name] = sum(len({*ids} & {*right}) for ids, right in pairs) / (20 * store.NUM_NEIGHBOURS)
    assert recall[NAME] > 0.8
    assert recall[HALF] > recall[NAME] - 0.05


def found(vectors: list[list[float]], *, is_shared: bool) -> list[list[int]]:
    """The ids of the nearest rows of the big scope, for each vector."""
    ask = partial(store.find_nearest, scope("big"), "test-embedder", ttl_s=86_400, is_shared=is_shared)
    return [[hit.entry_id for hit in ask(vector)] for vector in vectors]


def test_the_index_changes_its_kind_both_ways_and_the_old_one_stays_until_the_new_one_is_whole(
    rule, monkeypatch
):
    monkeypatch.setattr(shared_index, "MIN_ROWS", 50)
    fill(rule, "big", 60)
    seen, execute = [], shared_index._execute

    def watched(sql: str) -> None:
        execute(sql)
        if "INDEX" in sql:
            valid = {*shared_index._indexes(is_valid=True)}
            seen.append((valid, "HALF" if "halfvec" in statement_of("big") else "WHOLE"))

    monkeypatch.setattr(shared_index, "_execute", watched)
    for most, expected in ((60, NAME), (59, HALF), (60, NAME)):
        monkeypatch.setattr(shared_index, "MAX_VECTOR_ROWS", most)
        assert shared_index.rebuild() == [expected]
    assert seen == [
        ({NAME}, "WHOLE"),
        ({NAME, HALF}, "HALF"),
        ({HALF}, "HALF"),
        ({NAME, HALF}, "HALF"),
        ({NAME}, "WHOLE"),
    ]


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
