"""The nearest rows of a scope are found, whatever else the table holds."""

from __future__ import annotations

import hashlib
import random

import pytest
from django.db import connection

from semcache.storage import store
from tests.semcache import factories
from tests.semcache.factories import EMBEDDING_DIM

pytestmark = pytest.mark.django_db

BULK = """
INSERT INTO semcache_cacheentry (scope, prompt_sha256, question, answer, embedding, rule_id, sharing, tenant, owner,
       model_revision, embedder, token_ids, tokenizer, num_tokens, is_pinned, created_at, expires_at)
SELECT %(scope)s, encode(sha256((%(scope)s || n)::bytea), 'hex'), 'q' || n, 'a',
       (SELECT array_agg(c + (random() - 0.5) * %(noise)s) FROM unnest(%(centre)s::float8[]) AS c WHERE n > 0)::vector,
       %(rule)s, 'private', 't', 'o', 'r', 'test-embedder', '{}', '', 0, false,
       statement_timestamp() - interval '1 hour', statement_timestamp() + %(left_s)s * interval '1 second'
  FROM generate_series(1, %(count)s) n"""


def scope(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


def fill(rule, name: str, count: int, centre: list[float], noise: float, left_s: int = 3600) -> None:
    values = {
        "scope": scope(name),
        "rule": rule.pk,
        "count": count,
        "centre": centre,
        "noise": noise,
        "left_s": left_s,
    }
    with connection.cursor() as cursor:
        cursor.execute(BULK, values)


def brute_force(name: str, vector: list[float]) -> list[int]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, embedding FROM semcache_cacheentry WHERE scope = %s AND expires_at > statement_timestamp()",
            [scope(name)],
        )
        rows = [
            (key, [float(part) for part in text.strip("[]").split(",")]) for key, text in cursor.fetchall()
        ]

    def distance(row):
        dot = sum(a * b for a, b in zip(row[1], vector, strict=True))
        return -dot / sum(a * a for a in row[1]) ** 0.5, row[0]

    return [key for key, _ in sorted(rows, key=distance)][: store.NUM_NEIGHBOURS]


def test_a_small_scope_is_found_beside_thousands_of_nearer_rows_of_others():
    rule = factories.rule(ttl_s=86_400)
    centre = factories.vector_of("centre")
    fill(rule, "a", 3000, centre, 0.01)
    fill(rule, "b", 20, centre, 0.2)
    chance = random.Random(3)
    for _ in range(50):
        vector = [part + chance.gauss(0, 0.02) for part in centre]
        found = store.find_nearest(scope("b"), "test-embedder", vector, 86_400)
        assert [hit.entry_id for hit in found] == brute_force("b", vector)
        assert len(found) == store.NUM_NEIGHBOURS


def test_one_living_row_is_found_among_thousands_of_expired_ones():
    rule = factories.rule(ttl_s=86_400)
    centre = factories.vector_of("centre")
    fill(rule, "a", 2000, centre, 0.01, left_s=-5)
    living = factories.row(scope("a"), scope("key"), rule, embedding=[part + 0.01 for part in centre])
    found = store.find_nearest(scope("a"), "test-embedder", centre, 86_400)
    assert [hit.entry_id for hit in found] == [living.pk]


def test_similarity_is_one_for_the_same_direction_and_falls_with_the_angle():
    rule = factories.rule()
    one, other = [1.0] + [0.0] * (EMBEDDING_DIM - 1), [0.6, 0.8] + [0.0] * (EMBEDDING_DIM - 2)
    factories.row(scope("a"), scope("1"), rule, embedding=one)
    factories.row(scope("a"), scope("2"), rule, embedding=other)
    found = store.find_nearest(scope("a"), "test-embedder", [2.0] + [0.0] * (EMBEDDING_DIM - 1), 600)
    assert [round(hit.similarity, 6) for hit in found] == [1.0, 0.6]


def test_both_statements_go_through_the_scope_index():
    rule = factories.rule(ttl_s=86_400)
    for name in "abcdefgh":
        fill(rule, name, 300, factories.vector_of(name), 0.1)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE semcache_cacheentry")
        for sql in (store.EXACT, store.NEAREST):
            cursor.execute(
                "EXPLAIN " + sql,
                {"scope": scope("a"), "prompt_sha256": scope("x"), "ttl_s": 600, "stale_s": 0,
                 "embedder": "test-embedder", "vector": store.vector_text(factories.vector_of("a")), "limit": 8,
                 "dim": EMBEDDING_DIM},
            )  # fmt: skip
            plan = "\n".join(line for (line,) in cursor.fetchall())
            assert "Seq Scan on semcache_cacheentry" not in plan, plan


def places_of(*names: str) -> list[tuple[str, str]]:
    return [(scope(name), scope("key")) for name in names]


def test_all_places_of_a_question_are_asked_at_once_and_the_first_is_preferred(django_assert_num_queries):
    rule = factories.rule(ttl_s=86_400)
    later, earlier = (factories.row(scope(name), scope("key"), rule) for name in ("later", "earlier"))
    factories.row(scope("earlier"), scope("other key"), rule)
    with django_assert_num_queries(1):
        hit = store.find_exact(places_of("nowhere", "earlier", "later"), 600)
    assert hit is not None and hit.entry_id == earlier.pk
    hit = store.find_exact(places_of("later", "earlier"), 600)
    assert hit is not None and hit.entry_id == later.pk
    assert store.find_exact([(scope("earlier"), scope("key of another"))], 600) is None


def test_of_several_places_each_is_found_by_the_index_of_scope_and_prompt():
    rule = factories.rule(ttl_s=86_400)
    fill(rule, "a", 500, factories.vector_of("a"), 0.1)
    scopes, keys = map(list, zip(*places_of("a", "b", "c"), strict=True))
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE semcache_cacheentry")
        cursor.execute(
            "EXPLAIN " + store.exact_at_places(), {"scopes": scopes, "keys": keys, "ttl_s": 600, "stale_s": 0}
        )
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "one_entry_per_scope_and_prompt" in plan, plan
