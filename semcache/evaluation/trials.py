"""From labelled questions to trials: what each way of deciding would serve, and how near it had to be.

Knows the ways that are compared (plain cosine, with the guard, with the guard and a verifier) and the product's own
rules for conversations. Knows no threshold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from semcache.evaluation.metrics import NEVER, Trial
from semcache.evaluation.sets import OUT_OF_SCOPE, Labelled, Pair, Talks
from semcache.evaluation.shipped import GAP, Asked, neighbour, served
from semcache.evaluation.vectors import Embed, Verify
from semcache.judge import MIN_AGREED_CHARS, voted
from semcache.text import context, guard, wording
from semcache.text.normalize import canonical

COSINE, GUARDED, VERIFIED = "cosine", "guard", "guard, then verifier"
PRODUCT, PRODUCT_VERIFIED = "product", "product, then verifier"
SHIPPED = "as shipped"
NUM_NEIGHBOURS = 8  # as many as the store is asked for
ROWS_AT_ONCE = 512

Trials = dict[str, list[Trial]]


def of_pairs(pairs: Sequence[Pair], embed: Embed, verify: Verify | None = None) -> Trials:
    """One question of each pair is stored, the other asked."""
    similarities = _similarities([(pair.first, pair.second) for pair in pairs], embed)
    found: Trials = {COSINE: [], GUARDED: []}
    for pair, similarity in zip(pairs, similarities, strict=True):
        passes = guard.may_serve(guard.verdicts(pair.first, pair.second))
        found[COSINE].append(Trial(similarity, pair.is_same, pair.kind))
        found[GUARDED].append(Trial(similarity if passes else -NEVER, pair.is_same, pair.kind))
    asked = [
        Asked(pair.second, (neighbour(0, pair.first, "", similarity),))
        for pair, similarity in zip(pairs, similarities, strict=True)
    ]
    found[SHIPPED] = [
        Trial(1.0 if hit else -NEVER, pair.is_same, pair.kind)
        for pair, hit in zip(pairs, served(asked, verify), strict=True)
    ]
    if verify is not None:
        scores = _verified([(pair.first, pair.second) for pair in pairs], verify)
        found[VERIFIED] = [
            Trial(score, pair.is_same, pair.kind) for pair, score in zip(pairs, scores, strict=True)
        ]
    return found


def of_intents(
    stored: Sequence[Labelled], asked: Sequence[Labelled], embed: Embed, verify: Verify | None = None
) -> Trials:
    """All of `stored` has its intent's answer, as one written by hand. Each of `asked` gets the nearest answer; with
    the guard the one that the nearest questions vote for, else the first in which it finds no difference.

    A rule's two thresholds move together there: who is voted for may be so much farther away as they lie apart. A
    question out of scope is never stored, and whatever it gets is wrong.
    """
    stored = [question for question in stored if question.intent != OUT_OF_SCOPE]
    found: Trials = {COSINE: [], GUARDED: []}
    looked: list[Asked] = []
    for question, neighbours in zip(asked, _nearest(stored, asked, embed), strict=True):
        nearest = [(stored[place], similarity) for place, similarity in neighbours]
        evidence = [guard.verdicts(one.text, question.text) for one, _ in nearest]
        winner = voted([(_answer(one), similarity) for one, similarity in nearest])
        if winner is not None and guard.may_be_overruled(evidence[winner]):
            voted_for, similarity = nearest[winner]
            passing: tuple[Labelled, float] | None = (voted_for, similarity + GAP)
        else:
            passing = _first(nearest, map(guard.may_serve, evidence))
        found[COSINE].append(_answered(question, nearest[0]))
        found[GUARDED].append(_answered(question, passing))
        hits = (neighbour(place, one.text, _answer(one), near) for place, (one, near) in enumerate(nearest))
        looked.append(Asked(question.text, tuple(hits)))
    found[SHIPPED] = [
        Trial(1.0 if hit else -NEVER, hit is not None and hit.answer == _answer(question), question.intent)
        for question, hit in zip(asked, served(looked, verify), strict=True)
    ]
    return found


def _answer(question: Labelled) -> str:
    return question.intent.ljust(MIN_AGREED_CHARS)


def _first(
    nearest: Sequence[tuple[Labelled, float]], is_wanted: Iterable[bool]
) -> tuple[Labelled, float] | None:
    return next((neighbour for neighbour, wanted in zip(nearest, is_wanted, strict=True) if wanted), None)


def of_conversations(talks: Sequence[Talks], embed: Embed, verify: Verify | None = None) -> Trials:
    """The first conversation's last answer is stored, the second's last message asked.

    Plain cosine compares last messages, as most caches do; the product what the answers hang on, too.
    """
    found: Trials = {COSINE: [], PRODUCT: []}
    similarities = _similarities([(talk.first[-1], talk.second[-1]) for talk in talks], embed)
    matches = [_matched(talk) for talk in talks]
    nearness = _similarities([match.embedded for match in matches], embed)
    for talk, match, similarity, near in zip(talks, matches, similarities, nearness, strict=True):
        is_served = match.may_serve and not match.doubts
        found[COSINE].append(Trial(similarity, talk.is_same, talk.kind))
        found[PRODUCT].append(Trial(near if is_served else -NEVER, talk.is_same, talk.kind))
    asked = [_asked(match, near) for match, near in zip(matches, nearness, strict=True)]
    found[SHIPPED] = [
        Trial(1.0 if hit or match.is_exact else -NEVER, talk.is_same, talk.kind)
        for talk, match, hit in zip(talks, matches, served(asked, verify), strict=True)
    ]
    if verify is not None:
        found[PRODUCT_VERIFIED] = [
            Trial(score, talk.is_same, talk.kind)
            for talk, score in zip(talks, _confirmed(matches, verify), strict=True)
        ]
    return found


@dataclass(frozen=True, slots=True)
class _Match:
    """Two conversations as the product compares them; each of `doubts` is for the verifier."""

    embedded: tuple[str, str]
    may_serve: bool
    doubts: tuple[tuple[str, str], ...] = ()
    is_exact: bool = False
    last: tuple[str, str] = ("", "")
    hang_on: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())


def _asked(match: _Match, similarity: float) -> Asked:
    """As the judge meets it: found by the vector of all that its answer hangs on."""
    (stored, asked), (before, now) = match.last, match.hang_on
    found = (neighbour(0, stored, "", similarity, before),) if match.may_serve and not match.is_exact else ()
    return Asked(asked, found, now)


def _matched(talk: Talks) -> _Match:
    stored, asked = canonical(talk.first[-1]), canonical(talk.second[-1])
    if talk.first == talk.second:
        return _Match((stored, asked), may_serve=True, is_exact=True)
    before, now = context.hangs_on(stored, talk.first[:-1]), context.hangs_on(asked, talk.second[:-1])
    if before is None or now is None or wording.language(stored) != wording.language(asked):
        return _Match((stored, asked), may_serve=False)
    texts = context.embedded(stored, before), context.embedded(asked, now)
    verdicts = guard.verdicts(stored, asked)
    compared = context.compare(before, now, asked)
    if compared.why or not guard.may_be_overruled(verdicts):
        return _Match(texts, may_serve=False)
    is_unsure = not guard.may_serve(verdicts)
    doubts = ((stored, asked),) * is_unsure + compared.doubts
    return _Match(texts, may_serve=True, doubts=doubts, last=(stored, asked), hang_on=(before, now))


def _confirmed(matches: Sequence[_Match], verify: Verify) -> Iterator[float]:
    """1 where nothing is in doubt, the verifier's lowest score where something is, else nothing may serve."""
    scores = iter(verify([pair for match in matches for pair in match.doubts]))
    for match in matches:
        if match.may_serve:
            yield min((float(next(scores)) for _ in match.doubts), default=1.0)
        else:
            yield -NEVER


def _verified(pairs: Sequence[tuple[str, str]], verify: Verify) -> Iterator[float]:
    """1 where the guard finds nothing, the verifier's score where it only misses words, else nothing may serve."""
    for (first, second), score in zip(pairs, verify(pairs), strict=True):
        found = guard.verdicts(first, second)
        if guard.may_serve(found):
            yield 1.0
        else:
            yield float(score) if guard.may_be_overruled(found) else -NEVER


def _similarities(pairs: Sequence[tuple[str, str]], embed: Embed) -> list[float]:
    vectors = embed([first for first, _ in pairs] + [second for _, second in pairs])
    products = np.einsum("ij,ij->i", vectors[: len(pairs)], vectors[len(pairs) :])
    return [float(product) for product in products]


def _nearest(
    stored: Sequence[Labelled], asked: Sequence[Labelled], embed: Embed
) -> Iterator[list[tuple[int, float]]]:
    """For each of `asked` the places in `stored` of its nearest questions with their similarity, best first."""
    keys = embed([question.text for question in stored])
    queries = embed([question.text for question in asked])
    for start in range(0, len(queries), ROWS_AT_ONCE):
        similarities = queries[start : start + ROWS_AT_ONCE] @ keys.T
        for row in similarities:
            places = np.argpartition(-row, NUM_NEIGHBOURS - 1)[:NUM_NEIGHBOURS]
            places = places[np.argsort(-row[places])]
            yield [(int(place), float(row[place])) for place in places]


def _answered(question: Labelled, neighbour: tuple[Labelled, float] | None) -> Trial:
    if neighbour is None:
        return Trial(-NEVER, False, question.intent)
    return Trial(neighbour[1], neighbour[0].intent == question.intent, question.intent)
