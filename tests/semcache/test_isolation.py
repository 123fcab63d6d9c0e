"""SC-04, SC-05: ten thousand look-ups over everything that narrows a scope find no canary of another one.

Every row has the same vector, so that only the scope keeps them apart. The statements are the store's own, run for
many askers at once. Each way to forget a part of the scope must make the same check find foreign canaries.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import pytest
from django.db import connection
from django.db.backends.utils import CursorWrapper

from semcache.look import Look
from semcache.models import CacheEntry
from semcache.rules import policy
from semcache.rules.rulebook import as_value
from semcache.scope import Scope
from semcache.service import forget_rules
from semcache.storage import store
from semcache.text import wording
from semcache.text.normalize import canonical
from tests.semcache import factories
from tests.semcache.factories import all_alike, ask

NUM_LOOKUPS, NUM_CANARIES = 10_000, 2000
CHOICES = {
    "owner": [f"user:{number}" for number in range(6)],
    "tenant": ["sales", "support"],
    "model": ["small", "large"],
    "model_revision": ["1", "2"],
    "system_prompt": ["", "Answer in one word."],
    "parameters": ["{}", '{"max_tokens": 16}'],
    "epoch": ["1", "2"],
    "embedder": ["e1", "e2"],
    "history": ["", "what was said before"],
    "text": ["Which secret word does Garden use?", "Which secret word do I use?", "花园项目的暗号是什么"],
}
NARROWING = ("model", "model_revision", "system_prompt", "parameters", "epoch")
VECTOR = store.vector_text(factories.vector_of("everything"))


@dataclass(frozen=True, slots=True)
class Asker:
    """One combination of what a question brings along."""

    owner: str
    tenant: str
    model: str
    model_revision: str
    system_prompt: str
    parameters: str
    epoch: str
    embedder: str
    history: str
    text: str

    def look(self, rule: policy.Rule) -> Look:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        look = Look(factories.question(**values), canonical(self.text))
        look.rule = rule
        look.enter_scope()
        return look


def may_see(asker: Asker, maker: Asker, sharing: str, *, by_meaning: bool) -> bool:
    """What the documentation promises, said once more and differently."""
    if by_meaning and asker.embedder != maker.embedder:
        return False
    if any(getattr(asker, name) != getattr(maker, name) for name in NARROWING):
        return False
    if ("花" in asker.text) != ("花" in maker.text) or maker.history not in ("", asker.history):
        return False
    is_same_tenant, is_same_owner = asker.tenant == maker.tenant, asker.owner == maker.owner
    if maker.history or " I " in maker.text or sharing in ("private", "promoted"):
        return is_same_tenant and is_same_owner
    return is_same_tenant or sharing == "public"


def askers(count: int, seed: int) -> list[Asker]:
    chance = random.Random(seed)
    return [Asker(**{name: chance.choice(values) for name, values in CHOICES.items()}) for _ in range(count)]


def plant(makers: list[Asker], rule: Any) -> None:
    """A row for each maker, whose answer is its place in the list; of those who share a place the first has it."""
    value = as_value(rule)
    entries = []
    for place, maker in enumerate(makers):
        look = maker.look(value)
        scope, key = look.home
        entries.append((scope.digest(), key, str(place), None if maker.history else VECTOR, maker.embedder))
    columns = [list(column) for column in zip(*entries, strict=True)]
    with connection.cursor() as cursor:
        cursor.execute(PLANT, [*columns, rule.pk])


PLANT = """
INSERT INTO semcache_cacheentry (scope, prompt_sha256, question, answer, embedding, rule_id, sharing, tenant, owner,
       model_revision, embedder, token_ids, tokenizer, num_tokens, is_pinned, created_at, expires_at)
SELECT scope, key, 'q', answer, vector::vector, rule.id, rule.sharing, 't', 'o', 'r', embedder, '{}', '', 0, false,
       now() - interval '1 minute', now() + interval '1 day'
  FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::text[]) AS row (scope, key, answer, vector, embedder),
       semcache_cacherule rule WHERE rule.id = %s
ON CONFLICT DO NOTHING"""


def found(statement: str, places: list[tuple[int, str, str, str]]) -> list[tuple[int, int]]:
    """(asker's, maker's place) for every row that the statement gives to (asker's place, scope, key, embedder)."""
    for name in ("scope", "prompt_sha256", "embedder"):
        statement = statement.replace(f"%({name})s", f"asked.{name}")
    numbers, scopes, keys, embedders = zip(*places, strict=True)
    sql = (
        "SELECT asked.n, found.answer::int FROM unnest(%(n)s::int[], %(scopes)s::text[], %(keys)s::text[],"
        " %(embedders)s::text[]) AS asked (n, scope, prompt_sha256, embedder)"
        f" CROSS JOIN LATERAL ({statement}) AS found"
    )
    values = {"n": list(numbers), "scopes": list(scopes), "keys": list(keys), "embedders": list(embedders),
              "vector": VECTOR, "dim": 384, "ttl_s": 86_400, "stale_s": 3600,
              "limit": store.NUM_NEIGHBOURS}  # fmt: skip
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return list(cursor.fetchall())


def pairs_found(
    rule: Any, makers: list[Asker], all_askers: list[Asker]
) -> Iterator[tuple[Asker, Asker, bool]]:
    """(asker, maker of what was found, whether by meaning)."""
    exact, nearest = [], []
    for place, asker in enumerate(all_askers):
        look = asker.look(as_value(rule))
        exact += [(place, scope, key, asker.embedder) for scope, key in look.exact_places]
        if look.goes_by_meaning:
            nearest += [(place, scope.digest(), "", asker.embedder) for scope in look.scopes]
    for statement, places in ((store.EXACT, exact), (store.NEAREST, nearest)):
        for asker_place, maker_place in found(statement, places):
            yield all_askers[asker_place], makers[maker_place], statement is store.NEAREST


def num_foreign(sharing: str, num_lookups: int) -> tuple[int, int]:
    """(foreign, own) canaries found."""
    rule = factories.rule(sharing=sharing, ttl_s=86_400)
    makers = list(dict.fromkeys(askers(NUM_CANARIES, seed=1)))
    plant(makers, rule)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE semcache_cacheentry")
    everybody = askers(num_lookups, seed=2)
    # In parts: the database ends a transaction in which nothing happens for long.
    parts = [everybody[start : start + 500] for start in range(0, num_lookups, 500)]
    pairs = [pair for part in parts for pair in pairs_found(rule, makers, part)]
    foreign = sum(not may_see(asker, maker, sharing, by_meaning=near) for asker, maker, near in pairs)
    return foreign, sum(asker == maker for asker, maker, _ in pairs)


@pytest.mark.django_db
@pytest.mark.parametrize("sharing", ["private", "promoted", "tenant", "public"])
def test_ten_thousand_look_ups_find_no_canary_of_another_scope(sharing):
    foreign, own = num_foreign(sharing, NUM_LOOKUPS)
    assert foreign == 0
    assert own > NUM_LOOKUPS / 10


@pytest.mark.django_db
@pytest.mark.parametrize("name", [field.name for field in fields(Scope) if field.name != "sharing"])
def test_a_scope_that_forgot_a_field_would_be_noticed(monkeypatch, name):
    whole = Scope.digest
    monkeypatch.setattr(Scope, "digest", lambda scope: whole(replace(scope, **{name: ""})))
    assert num_foreign("private", 1000)[0] > 0


@pytest.mark.django_db
@pytest.mark.parametrize("statement", ["EXACT", "NEAREST"])
def test_a_statement_that_forgot_the_scope_would_be_noticed(monkeypatch, statement):
    text = getattr(store, statement)
    monkeypatch.setattr(store, statement, text.replace("e.scope = %(scope)s AND", ""))
    assert getattr(store, statement) != text
    assert num_foreign("private", 300)[0] > 0


@pytest.mark.django_db
def test_a_statement_that_forgot_the_embedder_would_be_noticed(monkeypatch):
    text = store.NEAREST
    monkeypatch.setattr(store, "NEAREST", text.replace("e.embedder = %(embedder)s AND", ""))
    assert text != store.NEAREST
    assert num_foreign("private", 300)[0] > 0


@pytest.mark.django_db
def test_a_rule_that_shared_what_is_personal_would_be_noticed(monkeypatch):
    monkeypatch.setattr(wording, "is_personal", lambda text: False)
    assert num_foreign("public", 1000)[0] > 0


async def test_to_a_stranger_a_private_entry_costs_the_same_statements_as_nothing(committed, monkeypatch):
    """Not by the clock, which lies on a busy machine: the statements and the rows they give are the same."""
    await factories.arule()
    seen = []
    execute = CursorWrapper.execute

    def recorded(cursor, sql, params=None):
        result = execute(cursor, sql, params)
        seen.append((sql, cursor.rowcount))
        return result

    monkeypatch.setattr(CursorWrapper, "execute", recorded)
    cost = []
    for is_there in (False, True):
        if is_there:
            await factories.store("Which secret word does Garden use?", "rose", all_alike, owner="user:1")
        forget_rules()
        seen.clear()
        decision = await ask("Which secret word does Garden use?", all_alike, owner="user:2")
        assert (decision.hit, decision.candidates) == (None, ())
        cost.append(list(seen))
    assert cost[0] == cost[1]
    assert len(cost[0]) >= 3  # rules, exact, nearest


@pytest.mark.django_db
def test_a_private_entry_makes_a_strangers_look_up_read_no_more_rows():
    """The scope is the index's first column: rows of others are not even read and thrown away."""
    rule = factories.rule(ttl_s=86_400)
    makers = list(dict.fromkeys(askers(NUM_CANARIES, seed=1)))
    plant(makers, rule)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE semcache_cacheentry")
    stranger = replace(makers[0], owner="user:stranger", history="")
    before, num_rows = rows_read(stranger, rule), CacheEntry.objects.count()
    plant([replace(stranger, owner="user:new"), replace(stranger, owner="user:newer")], rule)
    assert rows_read(stranger, rule) == before
    assert CacheEntry.objects.count() == num_rows + 2


def rows_read(asker: Asker, rule: Any) -> list[str]:
    """The plans of a look-up with the rows that each of their nodes took and threw away."""
    look = asker.look(as_value(rule))
    ((scope, key),) = look.exact_places
    values = {"scope": scope, "prompt_sha256": key, "embedder": asker.embedder, "vector": VECTOR, "dim": 384,
              "ttl_s": 600, "stale_s": 3600, "limit": store.NUM_NEIGHBOURS}  # fmt: skip
    lines = []
    with connection.cursor() as cursor:
        for sql in (store.EXACT, store.NEAREST):
            cursor.execute(
                "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) " + sql, values
            )
            lines += [line for (line,) in cursor.fetchall()]
    assert not any("Seq Scan on semcache_cacheentry" in line for line in lines)
    return lines
