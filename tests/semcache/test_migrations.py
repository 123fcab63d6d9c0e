"""The tables can be taken back to the first migration and up again with rows in them."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO

import pytest
from django.core.management import call_command
from django.db import connection

from semcache.models import CacheEntry, CacheEntryUse, CacheRule
from tests.semcache import factories
from tests.semcache.factories import vector_of
from tests.semcache.test_store import scope


@pytest.fixture
def tables(committed) -> Iterator[None]:
    """Up to date again afterwards, whatever happened."""
    yield
    migrate()


def migrate(*to: str) -> None:
    call_command("migrate", "semcache", *to, verbosity=0)


def rows(sql: str) -> list[tuple]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return list(cursor.fetchall())


def fill() -> CacheRule:
    rule = factories.rule(name="operator's", keywords=["plans"], ttl_s=86_400, capacity=77)
    vectors = {"a": vector_of("a"), "b": [0.6, 0.8], "c": None}
    for key, vector in vectors.items():
        entry = factories.row(scope("s"), scope(key), rule, question=key, answer=key * 3, embedding=vector)
        CacheEntryUse.objects.create(entry=entry, last_used_at=entry.created_at, hits=3)
    return rule


ENTRIES = """
SELECT entry.question, entry.answer, vector_dims(entry.embedding), used.hits
  FROM semcache_cacheentry entry JOIN semcache_cacheentryuse used ON used.entry_id = entry.id ORDER BY 1"""
MANY = """
WITH complaints AS (
     INSERT INTO semcache_cachecomplaint (scope, asked_sha256, reading_sha256, stored_sha256, why, created_at)
     SELECT %(scope)s, n, '', n, 'staff', statement_timestamp() FROM generate_series(1, %(count)s) n)
INSERT INTO semcache_cacheentry (scope, prompt_sha256, question, answer, rule_id, sharing, tenant, owner,
       model_revision, embedder, token_ids, tokenizer, num_tokens, is_pinned, created_at, expires_at)
SELECT %(scope)s, n, 'q', 'a', %(rule)s, 'private', 't', 'o', 'r', 'e', '{}', '', 0, false, now(),
       now() + interval '1 day' FROM generate_series(1, %(count)s) n"""
RULES = "SELECT name, keywords, ttl_s, capacity FROM semcache_cacherule WHERE capacity = 77"


def test_rows_survive_the_way_down_to_the_first_migration_and_rules_the_way_up(tables):
    rule = fill()
    migrate("0001_initial")
    # A vector of a size that the column no longer takes is forgotten; its row is found by its words.
    assert rows(ENTRIES) == [("a", "aaa", 384, 3), ("b", "bbb", None, 3), ("c", "ccc", None, 3)]
    kept = [("operator's", ["plans"], 86_400, 77)]
    assert rows(RULES) == kept
    migrate()
    assert rows(RULES) == kept
    # Digests of before cannot be brought up to date: what no look-up could find is gone.
    assert (CacheEntry.objects.count(), CacheEntryUse.objects.count()) == (0, 0)
    rule.refresh_from_db()
    entry = factories.row(scope("s"), scope("a"), rule, embedding=[0.6, 0.8])
    entry.delete()
    # What is written at every hit costs no log, as before.
    assert rows("SELECT relpersistence FROM pg_class WHERE relname = 'semcache_cacheentryuse'") == [("u",)]


def test_more_rows_than_a_batch_go_when_a_scope_loses_its_embedder(tables):
    rule = fill()
    migrate("0008_quality")
    with connection.cursor() as cursor:
        cursor.execute(MANY, {"rule": rule.pk, "scope": scope("s"), "count": 1100})
    migrate("0009_scope_without_embedder")
    assert rows("SELECT count(*) FROM semcache_cacheentry") == [(0,)]
    assert rows("SELECT count(*) FROM semcache_cachecomplaint") == [(0,)]


def test_the_models_are_those_of_the_migrations(db):
    said = StringIO()
    call_command("makemigrations", "semcache", check=True, dry_run=True, stdout=said)
    assert "No changes" in said.getvalue()
