"""Which rows of a file are taken: those that a first question would find under the chosen rule, and no others."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async

from semcache import pipeline, service
from semcache.imports import rows as import_rows
from semcache.imports.file import Row
from semcache.imports.rows import Judged, NobodyToAsk, Refusal, Terms
from semcache.models import CacheRule
from semcache.text import personal
from tests.semcache import factories

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def lent(settings, monkeypatch) -> None:
    """An embedder, and look-ups inside the test's own transaction."""
    settings.SEMCACHE_ASKED_BY = "tests.semcache.lender.as_asked"
    CacheRule.objects.all().delete()

    def here(work: Callable[..., Any], *args: Any, **named: Any) -> Awaitable[Any]:
        return sync_to_async(work)(*args, **named)

    for module in (service, pipeline):
        monkeypatch.setattr(module, "in_database", here)
    monkeypatch.setattr(import_rows, "in_database", here)


def judged(*texts: tuple[str, str], rule: CacheRule, **terms: Any) -> list[Judged]:
    rows = [Row(line, question, answer) for line, (question, answer) in enumerate(texts, start=2)]
    return async_to_sync(import_rows.judged)(rows, Terms(rule.pk, **terms))


def why(question: str, answer: str = "So.", *, rule: CacheRule, **terms: Any) -> tuple[Refusal | None, str]:
    (one,) = judged((question, answer), rule=rule, **terms)
    assert (one.entry is None) is (one.why is not None)
    return one.why, one.about


@pytest.fixture
def rule() -> CacheRule:
    return factories.rule(name="Everything", sharing="public", ttl_s=86_400)


@pytest.mark.parametrize(
    ("question", "answer", "refusal"),
    [
        ("What is a black hole?", "A star.", None),
        ("黑洞是什么？", "一种星体。", None),
        ("", "A star.", Refusal.EMPTY),
        (" \n", "A star.", Refusal.EMPTY),
        ("What is a black hole?", " \x00", Refusal.EMPTY),
        ("x" * 20_001, "A star.", Refusal.TOO_LONG),
        ("What is a black hole?", "x" * 200_001, Refusal.TOO_LONG),
        ("What time is it right now?", "Noon.", Refusal.OF_THIS_MOMENT),
        ("How do I reset my password?", "So.", Refusal.NOT_SHARED),
        ("我的订单到哪里了？", "在路上。", Refusal.NOT_SHARED),
    ],
)
def test_a_row_is_refused_with_its_reason(rule, question, answer, refusal):
    assert why(question, answer, rule=rule)[0] is refusal


def test_a_row_that_another_rule_decides_about_names_it(rule):
    factories.rule(name="Weather", keywords=["weather"], sharing="public", priority=1)
    assert why("What is the weather in Oslo?", rule=rule) == (Refusal.OTHER_RULE, "Weather")
    CacheRule.objects.filter(pk=rule.pk).update(keywords=["nothing else"])
    service.forget_rules()
    assert why("What is a black hole?", rule=rule) == (Refusal.OTHER_RULE, "")


@pytest.mark.parametrize(
    ("values", "refusal"),
    [({"mode": "off"}, Refusal.OTHER_RULE), ({"sharing": "private"}, Refusal.NOT_SHARED)],
)
def test_a_rule_that_is_off_or_keeps_answers_private_takes_nothing(rule, values, refusal):
    CacheRule.objects.update(**values)
    service.forget_rules()
    assert why("What is a black hole?", rule=rule)[0] is refusal


def test_the_same_question_twice_is_taken_once(rule):
    found = judged(
        ("What is rain?", "Water."), ("what  is rain? ", "Wet."), ("What is snow?", "Ice."), rule=rule
    )
    assert [one.why for one in found] == [None, Refusal.TWICE, None]


def test_what_is_stored_is_not_taken_again_while_it_is_served(rule):
    async_to_sync(factories.store)("What is rain?", "Water.", owner="user:9")
    assert why("What is rain?", "Wet.", rule=rule)[0] is Refusal.STORED
    CacheRule.objects.update(ttl_s=1)
    rule.entries.update(created_at="2020-01-01T00:00:00Z")
    service.forget_rules()
    assert why("What is rain?", "Wet.", rule=rule)[0] is None


@pytest.mark.parametrize(
    "answer", ["Write to ines@example.org.", "Call +47 22 33 44 55.", "他的电话是13812345678"]
)
def test_an_answer_that_leads_to_a_person_is_taken_on_request_only(rule, answer):
    refusal, kinds = why("Who answers at night?", answer, rule=rule)
    assert refusal is Refusal.PERSONAL and kinds
    assert why("Who answers at night?", answer, rule=rule, may_name_people=True)[0] is None


def test_a_mutant_that_looks_at_no_answer_would_be_noticed(rule, monkeypatch):
    monkeypatch.setattr(personal, "kinds_in", lambda text: frozenset())
    assert why("Who answers at night?", "Write to ines@example.org.", rule=rule)[0] is None


def test_an_answer_may_speak_of_us_and_you(rule):
    assert (
        why("When does the shop open?", "We open at nine, and I am glad when you come.", rule=rule)[0] is None
    )


@pytest.mark.parametrize(
    ("sharing", "terms", "stored_as"),
    [("public", {}, "public"), ("tenant", {"tenant": "sales"}, "tenant"), ("promoted", {}, "public")],
)
def test_an_entry_belongs_to_everybody_whom_the_rule_shares_with(rule, sharing, terms, stored_as):
    CacheRule.objects.update(sharing=sharing)
    service.forget_rules()
    (one,) = judged(("What is rain?", "Water."), rule=rule, **terms)
    assert one.entry is not None
    assert (one.entry.sharing, one.entry.owner, one.entry.tenant) == (stored_as, "", terms.get("tenant", ""))
    assert (one.entry.source, one.entry.took_ms, one.entry.num_tokens) == ("import", 0.0, 0)


def test_nothing_is_judged_while_nobody_says_what_is_served(rule, settings):
    settings.SEMCACHE_ASKED_BY = "tests.semcache.lender.nobody"
    with pytest.raises(NobodyToAsk):
        judged(("What is rain?", "Water."), rule=rule)


def test_a_look_ahead_embeds_nothing(rule, monkeypatch):
    async def broken(*_: Any) -> Any:
        raise AssertionError("nothing is to be embedded")

    monkeypatch.setattr(factories, "all_alike", broken)
    found = async_to_sync(import_rows.judged)(
        [Row(2, "What is rain?", "Water.")], Terms(rule.pk), with_vectors=False
    )
    assert found[0].why is None


def test_questions_are_embedded_in_batches(rule, monkeypatch):
    sizes: list[int] = []
    embed = factories.all_alike

    async def counting(texts: list[str]) -> Any:
        sizes.append(len(texts))
        return await embed(texts)

    monkeypatch.setattr(factories, "all_alike", counting)
    found = judged(*((f"What is word{number}?", "A word.") for number in range(70)), rule=rule)
    assert sizes == [32, 32, 6]
    assert all(one.entry is not None and one.entry.vector for one in found)
