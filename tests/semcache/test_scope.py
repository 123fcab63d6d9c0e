"""Nobody gets what belongs to another scope: canaries, random look-ups, and the proof that the test would notice."""

from __future__ import annotations

import random
from dataclasses import fields, replace

import pytest

from semcache.models import CacheEntry
from semcache.scope import Scope, shared
from semcache.service import Outcome, Reason
from semcache.storage import store
from tests.semcache import factories
from tests.semcache.factories import all_alike, ask

CANARY = "What is the secret word of the garden project?"
WORDINGS = (
    CANARY,
    "What's the secret word of the garden project",
    "what is the secret word for the garden project ?",
)


def owner_of(user: int) -> dict[str, str]:
    return {"owner": f"user:{user}", "tenant": f"tenant:{user % 7}"}


async def plant(num_users: int) -> None:
    for user in range(num_users):
        await factories.store(CANARY, f"canary-{user}", all_alike, **owner_of(user))


async def foreign_answers(num_users: int, num_lookups: int, seed: int) -> tuple[int, int]:
    """(foreign answers, own answers) among random look-ups, half of them by users who own nothing."""
    chance = random.Random(seed)
    foreign = own = 0
    for _ in range(num_lookups):
        user = chance.randrange(2 * num_users)
        decision = await ask(chance.choice(WORDINGS), all_alike, **owner_of(user))
        if decision.hit is not None:
            is_own = decision.hit.answer == f"canary-{user}"
            own, foreign = own + is_own, foreign + (not is_own)
        if any(candidate.entry_id for candidate in decision.candidates if not candidate.is_served):
            foreign += 1  # not even looked at
    return foreign, own


async def test_a_hundred_users_never_see_each_others_canaries(committed):
    await factories.arule()
    await plant(100)
    foreign, own = await foreign_answers(100, 300, seed=1)
    assert foreign == 0
    assert own > 100


@pytest.mark.parametrize("statement", ["NEAREST", "EXACT"])
async def test_without_the_scope_in_the_where_clause_the_canaries_are_seen(committed, monkeypatch, statement):
    await factories.arule()
    await plant(12)
    text = getattr(store, statement)
    without_scope = text.replace("e.scope = %(scope)s AND", "")
    assert without_scope != text
    monkeypatch.setattr(store, statement, without_scope)
    foreign, _ = await foreign_answers(12, 60, seed=2)
    assert foreign > 0


async def test_a_public_rule_shares_a_topic_but_never_a_personal_question(committed):
    await factories.arule(sharing="public")
    await factories.store("What is a black hole made of?", "Gravity.", all_alike, owner="user:p")
    await factories.store("My name is Ines. What is my name?", "Ines", all_alike, owner="user:p")
    await factories.store("What is my order balance?", "41.20", all_alike, owner="user:p")
    shared = await ask("What is a black hole made of?", all_alike, owner="user:q", tenant="other")
    assert shared.outcome is Outcome.HIT_EXACT
    for text in ("My name is Ines. What is my name?", "What is my order balance?"):
        for who in ({"owner": "user:q"}, {"owner": "user:p", "tenant": "other"}, {"owner": "guest:1"}):
            decision = await ask(text, all_alike, **who)
            assert (decision.hit, decision.reason) == (None, Reason.NO_NEIGHBOUR)
        assert (await ask(text, all_alike, owner="user:p")).outcome is Outcome.HIT_EXACT


async def test_a_public_rule_never_shares_what_was_said_in_a_conversation(committed):
    await factories.arule(sharing="public")
    await factories.store("Which colour was named?", "red", all_alike, owner="user:p", history="red|ok")
    assert (await ask("Which colour was named?", all_alike, owner="user:q", history="red|ok")).hit is None
    assert (await ask("Which colour was named?", all_alike, owner="user:p", history="red|ok")).hit is not None


async def test_a_business_lines_rule_shares_within_it_only(committed):
    await factories.arule(sharing="tenant")
    await factories.store("Which plans include backup?", "Both.", all_alike, owner="user:p", tenant="sales")
    assert (
        await ask("Which plans include backup?", all_alike, owner="user:q", tenant="sales")
    ).hit is not None
    assert (await ask("Which plans include backup?", all_alike, owner="user:p", tenant="support")).hit is None


async def test_an_entry_awaiting_promotion_is_its_owners(committed):
    await factories.arule(sharing="promoted")
    await factories.store("Which plans include backup?", "Both.", all_alike, owner="user:p")
    assert (await ask("Which plans include backup?", all_alike, owner="user:q")).hit is None
    assert (await ask("Which plans include backup?", all_alike, owner="user:p")).hit is not None


async def test_vectors_of_another_embedder_are_not_compared_even_inside_a_scope(committed):
    await factories.arule()
    await factories.store("Which plans include backup?", "Both.", all_alike)
    await CacheEntry.objects.aupdate(embedder="another")
    assert (await ask("Which plans include a backup?", all_alike)).reason is Reason.NO_NEIGHBOUR


SCOPE = Scope("private", "t", "o", "m", "r", "s", "p", "en", "1")


@pytest.mark.parametrize("name", [field.name for field in fields(Scope)])
def test_every_field_of_a_scope_counts(name):
    assert replace(SCOPE, **{name: "changed"}).digest() != SCOPE.digest()


def test_a_value_moved_to_the_next_field_is_another_scope():
    assert replace(SCOPE, tenant="to", owner="").digest() != replace(SCOPE, tenant="t", owner="o").digest()
    assert replace(SCOPE, tenant="a", owner="b").digest() != replace(SCOPE, tenant="b", owner="a").digest()


@pytest.mark.parametrize(
    ("sharing", "expected"),
    [
        ("private", None),
        ("promoted", ("", "")),
        ("tenant", ("t", "")),
        ("public", ("", "")),
        ("???", None),
    ],
)
def test_sharing_widens_the_scope(sharing, expected):
    wide = shared(SCOPE, sharing)
    assert (wide and (wide.tenant, wide.owner)) == expected


def test_what_is_promoted_lies_where_public_answers_do():
    assert shared(SCOPE, "promoted") == shared(SCOPE, "public") != shared(SCOPE, "tenant")
