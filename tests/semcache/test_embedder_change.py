"""Another embedder: the same words still find their answer, meanings are compared within one embedder's vectors."""

from __future__ import annotations

import pytest

from semcache.models import CacheEntry
from semcache.service import Outcome, Reason
from semcache.storage import store
from tests.semcache import factories
from tests.semcache.factories import all_alike, ask

pytestmark = pytest.mark.usefixtures("committed")

STORED = "Which plans include backup?"
REWORDED = "Which of the plans include a backup?"
OLD, NEW = {"embedder": "old-1"}, {"embedder": "new-1"}


async def wide(texts: list[str]) -> list[list[float]]:
    """Another embedder: everything is alike here, too, in vectors of another size."""
    return [[*vector, 0.01] for vector in await all_alike(texts)]


@pytest.mark.parametrize("sharing", ["private", "public"])
@pytest.mark.parametrize("embed", [all_alike, wide])
async def test_the_same_words_are_answered_under_any_embedder_and_others_under_their_own_only(sharing, embed):
    await factories.arule(sharing=sharing)
    await factories.store(STORED, "Both.", all_alike, **OLD)
    assert (await ask(STORED, embed, **NEW)).outcome is Outcome.HIT_EXACT
    assert (await ask(REWORDED, all_alike, **OLD)).outcome is Outcome.HIT_SEMANTIC
    decision = await ask(REWORDED, embed, **NEW)
    assert (decision.outcome, decision.reason, decision.candidates) == (Outcome.MISS, Reason.NO_NEIGHBOUR, ())


@pytest.mark.parametrize("sharing", ["private", "public"])
async def test_without_the_embedder_in_the_where_clause_answers_would_mix(monkeypatch, sharing):
    for name in ("NEAREST", "NEAREST_SHARED", "NEAREST_SHARED_HALF"):
        text = getattr(store, name)
        monkeypatch.setattr(store, name, text.replace("e.embedder = %(embedder)s AND", ""))
        assert getattr(store, name) != text
    await factories.arule(sharing=sharing)
    await factories.store(STORED, "Both.", all_alike, **OLD)
    assert (await ask(REWORDED, all_alike, **NEW)).outcome is Outcome.HIT_SEMANTIC


async def test_an_answer_that_is_stored_again_has_the_new_embedders_vector_and_name():
    await factories.arule()
    await factories.store(STORED, "Both.", all_alike, **OLD)
    await factories.store(STORED, "All three.", wide, may_read=False, **NEW)
    entry = await CacheEntry.objects.aget()
    assert (entry.answer, entry.embedder, len(entry.embedding)) == ("All three.", "new-1", 385)
    assert (await ask(REWORDED, wide, **NEW)).outcome is Outcome.HIT_SEMANTIC
    assert (await ask(REWORDED, all_alike, **OLD)).outcome is Outcome.MISS
