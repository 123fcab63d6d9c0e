"""Look-up and remember: the tiers, the multi-turn rules, admission, and what trouble turns into."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from asgiref.sync import sync_to_async

from semcache import pipeline, service
from semcache.models import CacheEntry, CacheRule
from semcache.service import Answer, Outcome, Reason, lookup, remember
from semcache.storage import store, threads
from tests.semcache import factories
from tests.semcache.factories import all_alike, all_apart, ask, broken, question


@pytest.fixture(autouse=True)
def only_rule(committed) -> CacheRule:
    return factories.rule()


async def change(rule: CacheRule, **values) -> None:
    await CacheRule.objects.filter(pk=rule.pk).aupdate(**values)
    service.forget_rules()


async def test_the_same_question_again_is_an_exact_hit():
    stored = await factories.store("Describe rain.", "Wet.")
    decision = await ask("  describe   rain. ")
    assert decision.outcome is Outcome.HIT_EXACT and decision.hit is not None
    assert (decision.hit.entry_id, decision.hit.answer, decision.hit.similarity) == (stored, "Wet.", 1.0)
    assert [name for name, _ in decision.steps] == ["rule", "exact"]


async def test_an_exact_hit_is_one_visit_to_the_database(monkeypatch):
    await factories.store("Describe rain.", "Wet.")
    visits = []

    async def in_database(work, *args):
        visits.append(work)
        return await threads.in_database(work, *args)

    monkeypatch.setattr(pipeline, "in_database", in_database)
    assert (await ask("Describe rain.")).outcome is Outcome.HIT_EXACT
    assert visits == [store.find_exact]


async def test_another_wording_is_a_semantic_hit_that_shows_its_candidates():
    stored = await factories.store("How do I switch on two-step login?", "In settings.", all_alike)
    decision = await ask("How can I turn on two-step login?", all_alike)
    assert decision.outcome is Outcome.HIT_SEMANTIC and decision.hit is not None
    assert decision.hit.entry_id == stored and decision.hit.similarity > 0.97
    assert [candidate.is_served for candidate in decision.candidates] == [True]


async def test_what_is_not_alike_is_a_miss():
    await factories.store("How do I switch on two-step login?", "In settings.")
    decision = await ask("How can I turn on two-step login?")
    assert (decision.outcome, decision.reason) == (Outcome.MISS, Reason.BELOW_THRESHOLD)


async def test_between_the_thresholds_nothing_is_served(only_rule):
    await change(only_rule, accept_similarity=1.0, verify_similarity=0.5)
    await factories.store("How do I switch on two-step login?", "In settings.", all_alike)
    decision = await ask("How can I turn on two-step login?", all_alike)
    assert (decision.outcome, decision.reason) == (Outcome.MISS, Reason.GREY_ZONE)


OPPOSITES = [
    ("How do I switch on two-step login?", "How do I switch off two-step login?"),
    ("Is the east door open on Sunday?", "Is the east door closed on Sunday?"),
    ("如何开启自动续费？", "如何关闭自动续费？"),
    ("可以带宠物吗", "不可以带宠物吗"),
    ("Which plans include backup?", "Which plans do not include backup?"),
]


@pytest.mark.parametrize(("one", "other"), OPPOSITES + [(b, a) for a, b in OPPOSITES])
async def test_opposites_are_never_served_however_alike(one, other):
    """SC-01."""
    await factories.store(one, "the answer to one", all_alike)
    decision = await ask(other, all_alike)
    assert (decision.outcome, decision.reason) == (Outcome.MISS, Reason.GUARDED)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("How do I switch on two-step login?", "How can I turn on two-step login?"),
        ("如何开启自动续费？", "怎么打开自动续费"),
        ("Which plans include backup?", "Which of the plans include a backup?"),
    ],
)
async def test_the_guard_lets_paraphrases_through(one, other):
    """SC-01: a guard that stops everything is none."""
    await factories.store(one, "the answer", all_alike)
    assert (await ask(other, all_alike)).outcome is Outcome.HIT_SEMANTIC


async def test_a_follow_up_never_takes_another_conversations_answer():
    await factories.store("Who leads the Bergen office?", "Ines.", all_alike)
    await factories.store("How old is she?", "41.", all_alike, history="Who leads the Bergen office?|Ines.")
    for text in ("How old is she?", "how old is she ?", "How old is she now?"):
        decision = await ask(text, all_alike, history="Who leads the Porto office?|Rui.")
        assert decision.outcome is Outcome.MISS
    first_turn = await ask("How old is she?", all_alike)
    assert first_turn.hit is None


async def test_a_conversation_replayed_word_for_word_hits():
    await factories.store("How old is she?", "41.", history="Who leads the Bergen office?|Ines.")
    decision = await ask("How old is she?", history="Who leads the Bergen office?|Ines.")
    assert decision.outcome is Outcome.HIT_EXACT


@pytest.mark.parametrize(
    "text", ["continue", "yes", "再详细一点", "and in winter?", "What about the other one?", "好的"]
)
async def test_short_and_leaning_follow_ups_are_found_by_nothing_but_their_history(text):
    await factories.store(text, "a first turn's answer", all_alike)
    decision = await ask(text, all_alike, history="something else")
    assert (decision.outcome, decision.vector) == (Outcome.MISS, None)


@pytest.mark.parametrize("text", ["", "   \n\t", "\x00"])
async def test_an_empty_last_message_bypasses(text):
    await factories.store("Describe rain.", "Wet.", all_alike)
    decision = await ask(text, all_alike)
    assert (decision.outcome, decision.reason) == (Outcome.BYPASS, Reason.EMPTY)
    assert await remember(decision, question(text), Answer("x", is_complete=True)) is None


async def test_a_self_contained_later_message_may_take_a_first_turns_answer():
    await factories.store("How many screens can stream on the Family plan?", "Four.", all_alike)
    decision = await ask("How many screens can stream on the Family plan?", all_alike, history="hello|hi")
    assert decision.outcome is Outcome.HIT_EXACT


async def test_an_answer_given_with_a_history_is_not_found_without_it():
    await factories.store(
        "How many screens can stream on the Family plan?", "Four.", all_alike, history="private|talk"
    )
    assert (await ask("How many screens can stream on the Family plan?", all_alike)).outcome is Outcome.MISS
    assert (await CacheEntry.objects.aget()).embedding is None


VARIANTS = {
    "system_prompt": ("", "Answer in one word."),
    "model": ("a", "b"),
    "model_revision": ("a@1", "a@2"),
    "parameters": ('{"max_tokens":16}', '{"max_tokens":400}'),
    "epoch": ("1", "2"),
    "tenant": ("sales", "support"),
    "owner": ("user:1", "user:2"),
}


@pytest.mark.parametrize("name", VARIANTS)
async def test_what_changes_the_output_is_never_crossed(name):
    for mine, theirs in (VARIANTS[name], VARIANTS[name][::-1]):
        await CacheEntry.objects.all().adelete()
        await factories.store("Describe rain please.", "Wet.", all_alike, **{name: mine})
        assert (await ask("Describe rain please.", all_alike, **{name: mine})).outcome is Outcome.HIT_EXACT
        assert (await ask("Describe rain please.", all_alike, **{name: theirs})).hit is None


async def test_a_language_is_never_crossed():
    await factories.store("你们公司叫什么名字", "Rill", all_alike)
    decision = await ask("what is your company called", all_alike)
    assert (decision.hit, decision.reason) == (None, Reason.NO_NEIGHBOUR)


async def test_a_higher_temperature_than_the_rules_bypasses_and_an_omitted_one_does_not(only_rule):
    await change(only_rule, max_temperature=0.5)
    await factories.store("Describe rain.", "Wet.")
    assert (await ask("Describe rain.", temperature=0.6)).reason is Reason.TEMPERATURE
    assert (await ask("Describe rain.", temperature=0.5)).outcome is Outcome.HIT_EXACT
    assert (await ask("Describe rain.", temperature=None)).outcome is Outcome.HIT_EXACT


async def test_no_cache_never_reads_but_refreshes_the_stored_answer():
    await factories.store("Describe rain in winter.", "Wet.")
    asked = question("Describe rain in winter.", may_read=False)
    decision = await lookup(asked, all_apart)
    assert (decision.outcome, decision.reason) == (Outcome.BYPASS, Reason.NOT_ASKED)
    await remember(decision, asked, Answer("Cold and wet.", is_complete=True))
    hit = (await ask("Describe rain in winter.")).hit
    assert hit is not None and hit.answer == "Cold and wet."
    assert (await CacheEntry.objects.aget()).embedding is not None


async def test_no_store_stores_nothing():
    assert await factories.store("Describe rain.", "Wet.", may_store=False) is None
    assert await CacheEntry.objects.acount() == 0


@pytest.mark.parametrize(
    "answer",
    [
        Answer("half", is_complete=False),
        Answer("", True),
        Answer(" \n", True),
        Answer("\x00", True),
        Answer("x" * 200_001, True),
    ],
    ids=["stopped", "empty", "blank", "nul", "huge"],
)
async def test_only_whole_answers_of_sensible_size_are_stored(answer):
    asked = question("Describe rain.")
    assert await remember(await lookup(asked, all_apart), asked, answer) is None
    assert await CacheEntry.objects.acount() == 0


async def test_token_ids_stay_with_the_text_they_were_made_with():
    asked = question("Describe rain.")
    answer = Answer("Wet.", is_complete=True, token_ids=(5, 6), tokenizer="t", num_tokens=2)
    await remember(await lookup(asked, all_apart), asked, answer)
    hit = (await ask("Describe rain.")).hit
    assert hit is not None and (hit.token_ids, hit.tokenizer, hit.num_tokens) == ((5, 6), "t", 2)
    await remember(await lookup(asked, all_apart), asked, replace(answer, text="W\x00et."))
    hit = (await ask("Describe rain.")).hit
    assert hit is not None and (hit.answer, hit.token_ids) == ("Wet.", ())


async def test_broken_text_is_cleaned_the_same_way_in_key_and_row():
    """DB-03."""
    assert (
        await factories.store("ab\x00cd ok \ud83d end \udc97", "x\x00y \ud83d \U0001f600", all_apart)
        is not None
    )
    decision = await ask("abcd ok \ufffd end \ufffd")
    assert decision.hit is not None
    assert decision.hit.answer == "xy \ufffd \U0001f600"


async def test_a_shadow_rule_looks_and_tells_but_never_serves(only_rule):
    await change(only_rule, mode="shadow")
    stored = await factories.store("How do I switch on two-step login?", "In settings.", all_alike)
    for text in ("How do I switch on two-step login?", "How can I turn on two-step login?"):
        decision = await ask(text, all_alike)
        assert (decision.outcome, decision.reason, decision.hit) == (Outcome.MISS, Reason.SHADOW, None)
        assert decision.would_hit is not None and decision.would_hit.entry_id == stored


async def test_rules_off_and_absent_keep_the_cache_out(only_rule):
    await change(only_rule, mode="off")
    assert await factories.store("Describe rain.", "Wet.") is None
    assert (await ask("Describe rain.")).reason is Reason.RULE_OFF
    await change(only_rule, is_enabled=False)
    assert (await ask("Describe rain.")).reason is Reason.NO_RULE


async def test_an_exact_rule_never_looks_at_meaning(only_rule):
    await change(only_rule, mode="exact")
    await factories.store("How do I switch on two-step login?", "In settings.", broken)
    assert (await ask("How do I switch on two-step login?", broken)).outcome is Outcome.HIT_EXACT
    assert (await ask("How can I turn on two-step login?", broken)).reason is Reason.NOT_STORED


async def test_without_an_embedding_lane_exact_matches_still_serve():
    await factories.store("Describe rain in winter.", "Wet.", broken, embedder="")
    assert (await ask("Describe rain in winter.", broken, embedder="")).outcome is Outcome.HIT_EXACT


async def test_a_failing_embedder_is_a_miss_whose_answer_is_still_stored():
    stored = await factories.store("Describe rain in winter.", "Wet.", broken)
    assert stored is not None
    assert (await ask("Describe rain in winter.", broken)).outcome is Outcome.HIT_EXACT
    assert (await ask("Describe snow in winter.", broken)).reason is Reason.EMBEDDER_FAILED


async def test_an_embedder_that_fails_again_and_again_is_left_alone():
    calls = 0

    async def counting(texts: list[str]):
        nonlocal calls
        calls += 1
        raise ConnectionError

    for number in range(8):
        await ask(f"Describe rain in winter number {number}.", counting)
    assert calls == 5


@pytest.mark.parametrize("vector", [[], [0.5] * 2001, [0.0] * 384, [float("nan")] * 384])
async def test_what_is_no_vector_is_refused_as_a_miss(vector):
    async def wrong(texts: list[str]):
        return [vector]

    assert (await ask("Describe rain in winter.", wrong)).reason is Reason.EMBEDDER_FAILED


@pytest.mark.parametrize("sharing", ["private", "public"])
async def test_any_embedder_fits_and_vectors_of_another_size_are_not_compared(only_rule, sharing):
    async def small(texts: list[str]):
        return [[0.6, 0.8]] * len(texts)

    await change(only_rule, sharing=sharing)
    await factories.store("Which plans include backup?", "of 384 numbers", all_alike)
    assert (await ask("Which of the plans include a backup?", small)).reason is Reason.NO_NEIGHBOUR
    stored = await factories.store("Which plans include a backup?", "of 2 numbers", small)
    hit = (await ask("Which of the plans include a backup?", small)).hit
    assert hit is not None and hit.entry_id == stored


async def test_a_slow_embedder_costs_the_budget_and_no_more(settings):
    settings.SEMCACHE_BUDGET_MS = 300

    async def never(texts: list[str]):
        await asyncio.Event().wait()

    decision = await ask("Describe rain in winter.", never)
    assert (decision.outcome, decision.reason) == (Outcome.MISS, Reason.TIMEOUT)


async def test_a_cancelled_look_up_is_cancelled():
    entered = asyncio.Event()

    async def never(texts: list[str]):
        entered.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(ask("Describe rain in winter.", never))
    await entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_broken_store_is_a_miss_and_rests_after_five_failures(monkeypatch):
    monkeypatch.setattr(store, "EXACT", "SELECT nonsense")
    for _ in range(5):
        assert (await ask("Describe rain.")).reason is Reason.STORE_FAILED
    decision = await ask("Describe rain.")
    assert (decision.outcome, decision.reason) == (Outcome.BYPASS, Reason.RESTING)


async def test_a_store_that_cannot_write_loses_the_entry_and_not_the_answer(monkeypatch):
    asked = question("Describe rain.")
    decision = await lookup(asked, all_apart)
    monkeypatch.setattr(store, "INSERT", "SELECT nonsense")
    assert await remember(decision, asked, Answer("Wet.", is_complete=True)) is None


async def test_a_rule_deleted_meanwhile_loses_the_entry_and_not_the_answer(only_rule):
    asked = question("Describe rain.")
    decision = await lookup(asked, all_apart)
    await sync_to_async(only_rule.delete)()
    assert await remember(decision, asked, Answer("Wet.", is_complete=True)) is None


async def test_sixteen_racing_inserters_leave_one_row():
    asked = question("Describe rain in winter.")
    decisions = [await lookup(asked, all_apart) for _ in range(16)]
    answers = [Answer(f"answer {number}", is_complete=True) for number in range(16)]
    ids = await asyncio.gather(*(remember(d, asked, a) for d, a in zip(decisions, answers, strict=True)))
    rows = [entry async for entry in CacheEntry.objects.all()]
    assert len(rows) == 1
    assert {entry_id for entry_id in ids if entry_id} == {rows[0].pk}


async def test_evicted_entries_are_gone():
    stored = await factories.store("Describe rain.", "Wet.")
    assert stored is not None
    assert await service.evict([stored, 987654]) == 1
    assert (await ask("Describe rain.")).outcome is Outcome.MISS


async def test_hits_are_written_in_batches():
    stored = await factories.store("Describe rain.", "Wet.")
    for _ in range(3):
        await ask("Describe rain.")
    assert await service.flush_hits() == 1
    entry = await CacheEntry.objects.select_related("use").aget(pk=stored)
    assert entry.use.hits == 3
    await ask("Describe rain.")
    await service.flush_hits()
    await entry.use.arefresh_from_db()
    assert entry.use.hits == 4


async def test_hits_on_an_entry_that_is_gone_are_forgotten():
    stored = await factories.store("Describe rain.", "Wet.")
    await ask("Describe rain.")
    assert stored is not None
    await service.evict([stored])
    await service.flush_hits()
    assert await CacheEntry.objects.acount() == 0
