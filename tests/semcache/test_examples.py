"""A rule may be chosen by example questions: near one of them is enough, and nobody is embedded for nothing."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence

import pytest
from asgiref.sync import sync_to_async

from semcache import pipeline, process, service
from semcache.decision import Outcome, Reason
from semcache.rules import examples, policy
from semcache.rules.examples import ExampleBook
from semcache.rules.policy import Rule, by_example, choose, compiled
from tests.semcache import factories

LATER = "how long does delivery to Norway take?"
HEALTH = ("does aspirin help against a headache?", "how do I treat a burn?")


class Embedder:
    """Texts about the body are alike (0.95), everything else is apart from everything; counts what it was given."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    async def __call__(self, texts: list[str]) -> list[Sequence[float]]:
        self.texts += texts
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> list[float]:
        own = factories.vector_of(text)
        if not any(word in text for word in ("aspirin", "burn", "fever")):
            return own
        body = factories.vector_of("the body")
        mixed = [math.sqrt(0.95) * a + math.sqrt(0.05) * b for a, b in zip(body, own, strict=True)]
        length = math.sqrt(sum(number * number for number in mixed))
        return [number / length for number in mixed]


@pytest.fixture
def embed() -> Embedder:
    return Embedder()


@pytest.fixture(autouse=True)
def fresh_book(monkeypatch) -> None:
    monkeypatch.setattr(process, "examples", ExampleBook())


def rules(*given: Rule) -> tuple[Rule, ...]:
    return compiled(given, on_bad=pytest.fail)


def test_a_rule_with_examples_alone_matches_only_what_is_near_one():
    book = rules(Rule(1, "health", examples=HEALTH), Rule(2, "rest", priority=1000))
    assert choose(book, "anything", "", "").id == 2
    assert choose(book, "anything", "", "", like=frozenset({1})).id == 1


def test_an_example_is_one_more_way_to_match_beside_pattern_and_keywords():
    (rule,) = rules(Rule(1, "health", keywords=("pill",), examples=HEALTH, tenant="clinic"))
    assert rule.matches("a pill", "clinic", "")
    assert rule.matches("a burn", "clinic", "", like=frozenset({1}))
    assert not rule.matches("a burn", "clinic", "")
    assert not rule.matches("a burn", "shop", "", like=frozenset({1}))


@pytest.mark.parametrize(
    "bad", [("", "  "), tuple(f"question {number}" for number in range(policy.MAX_EXAMPLES + 1))]
)
def test_a_rule_whose_examples_can_not_be_used_is_left_out_and_never_matches_everything(bad):
    reported: list[int] = []
    book = compiled(
        [Rule(1, "bad", examples=bad), Rule(2, "good", priority=1000, examples=("", *HEALTH))],
        on_bad=lambda rule, problem: reported.append(rule.id),
    )
    assert reported == [1]
    assert [(rule.id, rule.examples) for rule in book] == [(2, HEALTH)]


def test_only_rules_that_an_example_could_make_win_are_compared():
    early, words = Rule(1, "a", priority=1, examples=HEALTH), Rule(2, "b", priority=2, keywords=("bill",))
    late, elsewhere = Rule(3, "c", priority=3, examples=HEALTH), Rule(4, "d", tenant="x", examples=HEALTH)
    book = rules(early, words, late, elsewhere)
    assert [rule.id for rule in by_example(book, "my bill", "", "")] == [1]
    assert [rule.id for rule in by_example(book, "my burn", "", "")] == [1, 3]
    assert by_example(rules(words), "my bill", "", "") == ()


def test_examples_count_as_a_condition_and_words_are_more_specific():
    by_words, by_examples = Rule(9, "w", keywords=("burn",)), Rule(1, "e", examples=HEALTH)
    assert [rule.id for rule in rules(by_examples, by_words, Rule(0, "all"))] == [9, 1, 0]


async def test_the_nearest_example_and_its_similarity_are_told(embed):
    book = ExampleBook()
    health = Rule(1, "health", examples=HEALTH, example_similarity=0.9)
    strict = Rule(2, "strict", examples=HEALTH, example_similarity=0.99)
    (vector,) = await embed(["I have a fever"])
    found = await book.compared((health, strict), vector, "e", embed)
    assert [(one.rule_id, one.is_near) for one in found] == [(1, True), (2, False)]
    assert found[0].example in HEALTH and found[0].similarity == pytest.approx(0.95, abs=0.02)


async def test_examples_are_embedded_once_for_each_embedder(embed):
    book, rule = ExampleBook(), Rule(1, "health", examples=HEALTH)
    (vector,) = await embed(["x"])
    for name in ("e", "e", "f"):
        await book.compared((rule,), vector, name, embed)
    assert embed.texts.count(HEALTH[0]) == 2


async def test_many_who_ask_at_once_embed_the_examples_once_and_one_who_leaves_takes_nothing_along(embed):
    book, rule = ExampleBook(), Rule(1, "health", examples=HEALTH)
    (vector,) = await embed(["x"])
    go = asyncio.Event()

    async def slow(texts: list[str]) -> list[Sequence[float]]:
        await go.wait()
        return await embed(texts)

    asking = [asyncio.create_task(book.compared((rule,), vector, "e", slow)) for _ in range(5)]
    await asyncio.sleep(0)
    asking[0].cancel()
    await asyncio.sleep(0)
    go.set()
    done = await asyncio.gather(*asking, return_exceptions=True)
    assert isinstance(done[0], asyncio.CancelledError) and all(isinstance(one, tuple) for one in done[1:])
    assert embed.texts.count(HEALTH[0]) == 1


async def test_an_embedder_that_failed_is_asked_again(embed):
    book, rule = ExampleBook(), Rule(1, "health", examples=HEALTH)
    (vector,) = await embed(["x"])
    with pytest.raises(ConnectionError):
        await book.compared((rule,), vector, "e", factories.broken)
    assert await book.compared((rule,), vector, "e", embed)


async def test_the_book_does_not_grow_for_ever(embed, monkeypatch):
    monkeypatch.setattr(examples, "KEPT_VECTORS", 4)
    book = ExampleBook()
    (vector,) = await embed(["x"])
    for number in range(10):
        rule = Rule(1, "r", examples=(f"question {number}", f"and {number}"))
        assert len(await book.compared((rule,), vector, "e", embed)) == 1
    assert book.num_kept <= 4


async def test_a_question_near_an_example_falls_under_the_rule(committed, embed):
    await factories.arule(name="Health", priority=1, mode="off", examples=list(HEALTH))
    await factories.arule(name="Rest", priority=1000)
    decision = await factories.ask("what helps against a fever", embed)
    assert (decision.outcome, decision.reason, decision.rule.name) == (
        Outcome.BYPASS,
        Reason.RULE_OFF,
        "Health",
    )
    assert [one.is_near for one in decision.examples] == [True]
    other = await factories.ask("what is the tallest mountain", embed)
    assert other.rule.name == "Rest" and [one.is_near for one in other.examples] == [False]
    assert embed.texts.count("what is the tallest mountain") == 1, "the vector serves both purposes"


async def test_nothing_is_embedded_for_a_question_that_words_decide(committed, embed):
    await factories.arule(name="Orders", priority=1, mode="exact", keywords=["order"])
    await factories.arule(name="Health", priority=2, examples=list(HEALTH))
    assert (await factories.ask("my order", embed)).rule.name == "Orders"
    assert embed.texts == []


@pytest.mark.parametrize("mode", ["off", "exact", "semantic"])
async def test_a_question_that_only_examples_could_place_is_left_alone_while_nobody_embeds(committed, mode):
    """Under a later rule it might be shared or matched by meaning, against what the examples are there for."""
    await factories.arule(name="Health", priority=1, mode=mode, examples=list(HEALTH))
    await factories.arule(name="Rest", priority=1000, sharing="public")
    decision = await factories.ask("what helps against a fever", factories.broken)
    assert (decision.outcome, decision.reason) == (Outcome.BYPASS, Reason.EMBEDDER_FAILED)
    assert not decision.is_storable
    none = await factories.ask("what helps against a fever", factories.broken, embedder="")
    assert none.outcome is Outcome.BYPASS and not none.is_storable


async def test_an_exact_rule_chosen_by_example_stores_no_vector(committed, embed):
    await factories.arule(name="Health", mode="exact", examples=list(HEALTH))
    decision = await factories.ask("what helps against a fever", embed)
    assert decision.rule.name == "Health" and decision.is_storable and decision.vector is None


async def test_changed_examples_act_at_once_in_this_process(committed, embed):
    rule = await factories.arule(name="Health", mode="off", examples=list(HEALTH))
    assert (await factories.ask("a fever", embed)).reason is Reason.RULE_OFF
    rule.examples = ["what is the tallest mountain"]
    await sync_to_async(rule.save)()
    service.forget_rules()
    assert (await factories.ask("a fever", embed)).reason is Reason.NO_RULE
    assert policy.by_example(process.rules.fresh(), "a fever", "", "")


async def test_a_book_is_compared_with_the_examples_by_its_beginning(committed, embed):
    await factories.arule(name="Health", mode="exact", examples=list(HEALTH))
    book = "I have a fever. " + "And then it rained. " * 50_000
    decision = await factories.ask(book, embed)
    assert decision.rule.name == "Health" and decision.vector is None
    assert max(map(len, embed.texts)) <= pipeline.MAX_EMBEDDED_CHARS


async def num_shared(embed: factories.Embed) -> int:
    """How many questions about health land where everybody finds their answers."""
    await factories.arule(name="Health", priority=1, mode="exact", examples=list(HEALTH))
    await factories.arule(name="Rest", priority=1000, sharing="public")
    asked = ["what helps against a fever", "is a burn dangerous for children", "which aspirin is strongest"]
    decisions = [await factories.ask(text, embed) for text in asked]
    return sum(decision.is_storable and decision.sharing == "public" for decision in decisions)


async def test_what_examples_keep_private_is_never_shared(committed, embed):
    assert await num_shared(embed) == 0


async def test_what_examples_keep_private_is_not_shared_while_nobody_embeds(committed):
    assert await num_shared(factories.broken) == 0


async def test_a_likeness_that_was_not_looked_at_would_be_noticed(committed, embed, monkeypatch):
    monkeypatch.setattr(policy, "by_example", lambda *args: ())
    assert await num_shared(embed) == 3


async def test_a_failure_taken_for_no_likeness_would_be_noticed(committed, monkeypatch):
    whole = pipeline._text_embedded

    async def forgiving(look, embed, text, unsure=()):
        missing = await whole(look, embed, text, unsure)
        return None if unsure else missing

    monkeypatch.setattr(pipeline, "_text_embedded", forgiving)
    assert await num_shared(factories.broken) == 3


async def test_a_conversation_is_never_stored_by_the_vector_of_its_last_message_alone(committed, embed):
    """The last message is embedded for the examples first; the conversation's own vector may then fail to come."""
    await factories.arule(name="Health", priority=1, mode="off", examples=list(HEALTH))
    await factories.arule(name="Rest", priority=1000)

    async def fails_then(texts: list[str]) -> list[Sequence[float]]:
        if LATER not in texts and not set(texts) <= set(HEALTH):
            raise ConnectionError("gone meanwhile")
        return await embed(texts)

    turns = ("Do you sell bicycles?", "Yes, in twelve colours.")
    decision = await service.lookup(factories.question(LATER, history="h", turns=turns), fails_then)
    assert decision.reason is Reason.EMBEDDER_FAILED and decision.rule.name == "Rest"
    assert decision.vector is None
