"""After a change of embedder stored answers get new vectors in the background, and two kinds are never mixed."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

import pytest
from asgiref.sync import async_to_sync
from django.db import connection
from django.urls import reverse

from semcache import tasks
from semcache.lending import Asked
from semcache.models import CacheEntry
from semcache.storage import reembed, store
from tests.semcache import factories
from tests.semcache.factories import all_alike, all_apart
from tests.semcache.test_concurrent_eviction import at_once
from tests.semcache.test_store import scope

OLD, NEW = "old-1", "new-1"
SIZE = 60


class Lender:
    """Stands for the project: what the engine embeds with, and whether it has time."""

    def __init__(self) -> None:
        self.embed = all_alike
        self.tag = NEW
        self.is_busy = False
        self.num_texts = 0

    async def lend(self, text: str) -> Asked:
        return Asked(factories.question(text, embedder=self.tag), self._embed, None, self._is_busy)

    async def _embed(self, texts: list[str]) -> Sequence[Sequence[float]]:
        self.num_texts += len(texts)
        return await self.embed(texts)

    async def _is_busy(self) -> bool:
        return self.is_busy


lender = Lender()


async def lend(text: str, tenant: str, owner: str, model: str) -> Asked:
    return await lender.lend(text)


@pytest.fixture(autouse=True)
def lent(settings, monkeypatch) -> Iterator[Lender]:
    settings.SEMCACHE_ASKED_BY = f"{__name__}.lend"
    settings.SEMCACHE_RUN_BY = ""
    monkeypatch.setattr(f"{__name__}.lender", Lender())
    return lender


@pytest.fixture
def stored(committed) -> None:
    """Sixty answers of the embedder before, each with a direction of its own."""
    rule = factories.rule(ttl_s=86_400)
    for number in range(SIZE):
        factories.row(scope("s"), scope(f"q{number}"), rule, question=f"q{number}", embedder=OLD,
                      embedding=direction(number))  # fmt: skip


def direction(number: int) -> list[float]:
    return [float(place == number % SIZE) for place in range(SIZE)]


async def next_direction(texts: list[str]) -> list[Sequence[float]]:
    """The new embedder puts each question where the old one had the question after it."""
    return [direction(int(text[1:]) + 1) for text in texts]


def tags() -> dict[str, int]:
    return {
        tag: CacheEntry.objects.filter(embedder=tag).exclude(embedding=None).count() for tag in (OLD, NEW)
    }


def found(tag: str, number: int) -> list[str]:
    """The questions that are nearly equal to this one, by meaning."""
    place = number if tag == OLD else number + 1
    hits = store.find_nearest(scope("s"), tag, direction(place), 86_400)
    return [hit.question for hit in hits if hit.similarity > 0.9]


def test_rewordings_find_their_answers_again_once_all_is_embedded_anew(committed, lent):
    factories.rule(sharing="public", ttl_s=86_400)
    async_to_sync(factories.store)("Which plans include backup?", "Both.", all_apart, embedder=OLD)
    asked = async_to_sync(factories.ask)
    reworded = "Which of the plans include a backup?"
    assert asked(reworded, all_alike, embedder=NEW).hit is None
    assert reembed.num_waiting() == 1
    assert tasks.embed_anew() == 1
    assert reembed.num_waiting() == 0
    hit = asked(reworded, all_alike, embedder=NEW).hit
    assert hit is not None and hit.answer == "Both."
    assert (tasks.embed_anew(), lent.num_texts) == (0, 1)


def test_what_only_its_exact_words_may_find_gets_no_vector(committed, lent):
    factories.row(scope("s"), scope("q"), factories.rule(), embedder=OLD, embedding=None)
    assert (reembed.num_waiting(), tasks.embed_anew(), lent.num_texts) == (0, 0, 0)


def test_what_hangs_on_something_said_before_is_embedded_with_it(committed, lent):
    said = ["Which plans are there?", "Two."]
    factories.row(scope("s"), scope("q"), factories.rule(), question="Which one includes backup?", context=said,
                  embedder=OLD, embedding=[0.6, 0.8])  # fmt: skip
    texts: list[str] = []

    async def noted(asked: list[str]) -> list[Sequence[float]]:
        texts.extend(asked)
        return await all_apart(asked)

    lent.embed = noted
    assert tasks.embed_anew() == 1
    assert texts == ["Which one includes backup? Which plans are there?"]


def test_while_the_engine_has_better_things_to_do_everything_waits(stored, lent):
    lent.is_busy = True
    assert (tasks.embed_anew(), lent.num_texts, reembed.num_waiting()) == (0, 0, SIZE)
    lent.is_busy = False
    assert (tasks.embed_anew(), tags()) == (SIZE, {OLD: 0, NEW: SIZE})


@pytest.mark.parametrize("tag", ["", None])
def test_without_an_embedder_everything_stays_as_it_is(stored, lent, settings, tag):
    lent.tag = tag
    settings.SEMCACHE_ASKED_BY = "" if tag is None else settings.SEMCACHE_ASKED_BY
    assert (tasks.embed_anew(), lent.num_texts, tags()) == (0, 0, {OLD: SIZE, NEW: 0})


def test_an_embedder_that_goes_away_in_the_middle_is_waited_for(stored, lent):
    async def at_first(texts: list[str]) -> list[Sequence[float]]:
        if lent.num_texts > 20:
            raise ConnectionError("the engine is away")
        return await next_direction(texts)

    lent.embed = at_first
    assert tasks.embed_anew() == 16
    lent.embed = next_direction
    assert (tasks.embed_anew(), tags()) == (SIZE - 16, {OLD: 0, NEW: SIZE})


class Killed(BaseException):
    pass


def test_a_killed_run_loses_no_more_than_its_batch(stored, lent):
    async def until_killed(texts: list[str]) -> list[Sequence[float]]:
        if lent.num_texts > 20:
            raise Killed
        return await next_direction(texts)

    lent.embed = until_killed
    with pytest.raises(Killed):
        tasks.embed_anew()
    assert tags() == {OLD: SIZE - 16, NEW: 16}
    lent.embed = next_direction
    assert (tasks.embed_anew(), tags()) == (SIZE - 16, {OLD: 0, NEW: SIZE})


def test_a_text_that_the_new_embedder_cannot_read_holds_up_no_other(stored, lent):
    async def not_the_seventh(texts: list[str]) -> list[Sequence[float]]:
        vectors = await next_direction(texts)
        return [[0.0] * SIZE if text == "q7" else vector for text, vector in zip(texts, vectors, strict=True)]

    lent.embed = not_the_seventh
    assert (tasks.embed_anew(), reembed.num_waiting()) == (SIZE, 0)
    assert list(CacheEntry.objects.filter(embedding=None).values_list("question", flat=True)) == ["q7"]
    assert store.find_exact([(scope("s"), scope("q7"))], 86_400) is not None


def test_two_runs_at_once_have_the_effect_of_one(stored, lent):
    lent.embed = next_direction
    assert sum(at_once(tasks.embed_anew, tasks.embed_anew)) == SIZE
    assert tags() == {OLD: 0, NEW: SIZE}
    assert [found(NEW, number) for number in range(SIZE)] == [[f"q{number}"] for number in range(SIZE)]


def test_what_was_evicted_or_answered_anew_while_it_was_embedded_stays_so(stored, lent):
    async def meanwhile(texts: list[str]) -> list[Sequence[float]]:
        at_once(lambda: CacheEntry.objects.filter(question="q1").delete())
        fresh = {"embedder": NEW, "embedding": direction(30), "answer": "fresh"}
        at_once(lambda: CacheEntry.objects.filter(question="q2").update(**fresh))
        return await next_direction(texts)

    lent.embed = meanwhile
    assert tasks.embed_anew() == SIZE - 2
    assert not CacheEntry.objects.filter(question="q1").exists()
    kept = CacheEntry.objects.get(question="q2")
    assert (kept.answer, list(kept.embedding)) == ("fresh", direction(30))


def mixed_up(lent: Lender) -> tuple[list[list[str]], int]:
    """What look-ups under both embedders find wrongly while a run is under way, and how often they found something."""
    ended, wrong, num_right = threading.Event(), [], 0

    def look_up() -> None:
        nonlocal num_right
        while True:
            is_last = ended.is_set()
            for number in range(SIZE):
                for tag in (OLD, NEW):
                    questions = found(tag, number)
                    num_right += questions == [f"q{number}"]
                    if questions not in ([], [f"q{number}"]):
                        wrong.append(questions)
            if is_last:
                return

    def run() -> int:
        try:
            return tasks.embed_anew()
        finally:
            ended.set()

    lent.embed = next_direction
    at_once(look_up, run)
    return wrong, num_right


def test_no_look_up_during_the_run_compares_vectors_of_two_embedders(stored, lent):
    wrong, num_right = mixed_up(lent)
    assert (wrong, tags()) == ([], {OLD: 0, NEW: SIZE})
    assert num_right >= SIZE


@pytest.mark.parametrize("forgotten", ["embedding = made.vector::vector, ", ", embedder = %(tag)s"])
def test_a_run_that_forgot_the_vector_or_its_name_would_be_noticed(stored, lent, monkeypatch, forgotten):
    monkeypatch.setattr(reembed, "_STORE", reembed._STORE.replace(forgotten, ""))
    monkeypatch.setattr(tasks, "RUN_S", 2.0)  # without the name the same rows come again and again
    wrong, _ = mixed_up(lent)
    assert wrong


def test_the_page_of_rules_says_how_many_answers_wait(staff, lent):
    page = reverse("admin:semcache_cacherule_changelist")
    rule = factories.rule()
    said = []
    for number in range(3):
        said.append(staff.get(page).content.decode())
        factories.row(scope("s"), scope(str(number)), rule, embedder=OLD, embedding=[0.6, 0.8])
    assert "for the new embedder" not in said[0]
    assert "1 answer waits for the new embedder" in said[1]
    assert "2 answers wait for the new embedder" in said[2]


def test_what_waits_is_found_by_the_index(stored):
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE semcache_cacheentry")
        cursor.execute("SET enable_seqscan = off")
        try:
            for sql in (reembed._NEXT, reembed._COUNT):
                cursor.execute("EXPLAIN (COSTS OFF) " + sql, {"tag": NEW, "batch": 8})
                plan = "\n".join(line for (line,) in cursor.fetchall())
                assert "entry_embedder" in plan and "Seq Scan" not in plan and "Sort" not in plan
        finally:
            cursor.execute("RESET enable_seqscan")
