"""A wrong hit happens once: what was complained of does not serve that question again, and others are not touched."""

from __future__ import annotations

import pytest
from asgiref.sync import sync_to_async

from semcache import service
from semcache.models import CacheComplaint, CacheEntry, CacheRule
from semcache.quality import complaints
from semcache.service import Complaint, Outcome, Reason, Served
from tests.semcache import factories
from tests.semcache.factories import all_alike, ask

STORED = "Which plans include backup?"
ASKED, NEAR, FURTHER = (
    "Which of the plans include a backup?",
    "Please, which plans include a backup?",
    "Which cheap plans include backup?",
)


@pytest.fixture(autouse=True)
def only_rule(committed) -> CacheRule:
    return factories.rule(sharing="public")


async def change(**values) -> None:
    await CacheRule.objects.aupdate(**values)
    service.forget_rules()


def served(
    entry_id: int | None, asked: str = ASKED, owner: str = "user:1", tenant: str = "default"
) -> Served:
    assert entry_id is not None
    return Served(entry_id, asked, tenant, owner)


@pytest.mark.parametrize("why", [Complaint.THUMBS_DOWN, Complaint.ASKED_FRESH])
async def test_a_question_never_gets_the_answer_it_complained_of_again(why):
    stored = await factories.store(STORED, "All.", all_alike)
    assert (await ask(ASKED, all_alike)).outcome is Outcome.HIT_SEMANTIC
    assert await service.complain(served(stored), why)
    for text in (ASKED, NEAR):
        decision = await ask(text, all_alike)
        assert (decision.outcome, decision.reason) == (Outcome.MISS, Reason.GUARDED)
        assert [verdict.check for verdict in decision.candidates[0].verdicts if not verdict.passed] == [
            "complaints"
        ]
    assert (await ask(STORED, all_alike)).outcome is Outcome.HIT_EXACT, "its own question lost its answer"


async def test_the_pair_outlives_the_answer():
    """A mutant that names the entry by its id would serve the next answer to the same stored question."""
    stored = await factories.store(STORED, "All.", all_alike)
    await service.complain(served(stored), Complaint.THUMBS_DOWN)
    assert stored is not None
    await service.evict([stored])
    await factories.store(STORED, "All of them.", all_alike)
    assert (await ask(ASKED, all_alike)).reason is Reason.GUARDED


async def test_the_next_neighbour_may_serve_instead():
    stored = await factories.store(STORED, "first", all_alike)
    await service.complain(served(stored), Complaint.ASKED_FRESH)
    await factories.store(ASKED + " ", "second", all_alike)
    hit = (await ask(NEAR, all_alike)).hit
    assert hit is not None and hit.answer == "second"


async def test_a_thumb_down_evicts_the_owners_own_answer():
    await change(sharing="private")
    stored = await factories.store(STORED, "All.", all_alike)
    await service.complain(served(stored), Complaint.THUMBS_DOWN)
    assert await CacheEntry.objects.acount() == 0


async def test_a_thumb_down_on_another_question_leaves_the_shared_answer_to_the_others():
    stored = await factories.store(STORED, "All.", all_alike)
    await service.complain(served(stored), Complaint.THUMBS_DOWN)
    assert await CacheEntry.objects.acount() == 1


@pytest.mark.parametrize(("is_pinned", "num_left"), [(False, 0), (True, 1)])
async def test_a_thumb_down_on_its_own_question_evicts_any_answer_but_a_pinned_one(is_pinned, num_left):
    stored = await factories.store(STORED, "None.", all_alike)
    await CacheEntry.objects.aupdate(is_pinned=is_pinned)
    await service.complain(served(stored, STORED), Complaint.THUMBS_DOWN)
    assert await CacheEntry.objects.acount() == num_left
    assert await CacheComplaint.objects.acount() == 0, "the next answer to it would never be served"


async def test_an_answer_asked_afresh_for_its_own_question_stays_until_it_is_replaced():
    stored = await factories.store(STORED, "None.", all_alike)
    await service.complain(served(stored, STORED), Complaint.ASKED_FRESH)
    assert (await ask(STORED, all_alike)).outcome is Outcome.HIT_EXACT


@pytest.mark.parametrize("change_", [{"owner": "user:2"}, {"tenant": "sales"}])
async def test_nobody_complains_of_what_is_not_in_their_reach(change_):
    await change(sharing="private")
    stored = await factories.store(STORED, "All.", all_alike)
    assert not await service.complain(served(stored, **change_), Complaint.THUMBS_DOWN)
    assert await CacheEntry.objects.acount() == 1
    assert await CacheComplaint.objects.acount() == 0


async def test_a_complaint_stays_in_its_scope():
    await change(sharing="private")
    mine = await factories.store(STORED, "All.", all_alike)
    await factories.store(STORED, "All.", all_alike, owner="user:2")
    await service.complain(served(mine), Complaint.THUMBS_DOWN)
    assert (await ask(ASKED, all_alike, owner="user:2")).outcome is Outcome.HIT_SEMANTIC


async def test_complaining_twice_or_of_what_is_gone_changes_nothing():
    stored = await factories.store(STORED, "All.", all_alike)
    for _ in range(2):
        assert await service.complain(served(stored), Complaint.ASKED_FRESH)
    assert await CacheComplaint.objects.acount() == 1
    assert stored is not None
    await service.evict([stored])
    assert not await service.complain(served(stored), Complaint.ASKED_FRESH)


async def test_the_oldest_complaints_of_a_scope_give_way(monkeypatch):
    monkeypatch.setattr(complaints, "KEPT_PER_SCOPE", 3)
    stored = await factories.store(STORED, "All.", all_alike)
    for number in range(5):
        await service.complain(served(stored, f"Which {number} plans?"), Complaint.ASKED_FRESH)
    assert await CacheComplaint.objects.acount() == 3


async def test_what_staff_calls_wrong_goes_and_never_serves_again_whom_it_served():
    stored = await factories.store(STORED, "All.", all_alike)
    await ask(ASKED, all_alike)
    await service.flush_hits()
    assert await sync_to_async(complaints.mark_wrong)([stored]) == 1
    await factories.store(STORED, "All of them.", all_alike)
    assert (await ask(ASKED, all_alike)).reason is Reason.GUARDED
