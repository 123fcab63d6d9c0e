"""The steps of a look-up, in their order, within the time budget.

    rule -> scope -> exact -> nearest in scope -> thresholds and guard -> second opinion where unsure -> hit

Knows what a failure of each step means: a broken cache is a miss with a reason, never an error. Counts nothing.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

from django.db import Error

from semcache import process
from semcache.breaker import Breaker
from semcache.decision import Decision, Embed, Hit, NoVerifier, Outcome, Question, Reason, Verify
from semcache.judge import Judgement, judge, second_opinion
from semcache.limits import limits
from semcache.look import Dependency, Look
from semcache.quality import complaints
from semcache.rules import policy
from semcache.rules.policy import Mode
from semcache.storage import store
from semcache.storage.shared_index import MAX_DIM
from semcache.storage.threads import in_database
from semcache.text import context, wording
from semcache.text.normalize import canonical
from semcache.text.wording import Lasting

logger = logging.getLogger(__name__)

# More than any embedder reads. What is longer is never found by meaning; only a rule's examples are compared with it.
MAX_EMBEDDED_CHARS = 4000


async def tried(question: Question, embed: Embed, verify: Verify | None = None) -> Decision:
    """What `lookup` would find, for somebody who does not ask but looks: nothing is counted."""
    look = Look(question, canonical(question.text))
    if not look.text:
        return look.ended(Outcome.BYPASS, Reason.EMPTY)
    if not process.store_breaker.allows():
        return look.ended(Outcome.BYPASS, Reason.RESTING)
    try:
        async with asyncio.timeout(limits().budget_s):
            decision = await _looked_up(look, embed, verify)
    except TimeoutError:
        _breaker_of(look.waits_for).failed()
        return look.ended(Outcome.MISS, Reason.TIMEOUT)
    except Error:
        logger.warning("the cache's store failed during a look-up", exc_info=True)
        process.store_breaker.failed()
        return look.ended(Outcome.MISS, Reason.STORE_FAILED)
    process.store_breaker.succeeded()
    return decision


async def placed(question: Question, embed: Embed) -> Decision:
    """Where the question's answer belongs, for somebody who brings one: nothing is looked up and nothing counted.

    Raises what the database raises.
    """
    look = Look(question, canonical(question.text))
    if not look.text:
        return look.ended(Outcome.BYPASS, Reason.EMPTY)
    refusal = await _ruled(look, embed)
    if refusal is None:
        await _embedded(look, embed)
    return look.ended(Outcome.BYPASS, refusal or Reason.NOT_ASKED)


async def _looked_up(look: Look, embed: Embed, verify: Verify | None) -> Decision:
    refusal = await _ruled(look, embed)
    if refusal is not None:
        return look.ended(Outcome.BYPASS, refusal)
    if not look.question.may_read:
        await _embedded(look, embed)  # not to read, but so that the answer can be found later
        return look.ended(Outcome.BYPASS, Reason.NOT_ASKED)
    hit = await in_database(store.find_exact, look.exact_places, look.rule.ttl_s, look.rule.stale_s)
    look.step("exact")
    if hit is not None:
        return _found(look, Outcome.HIT_EXACT, Reason.EXACT, hit)
    missing = await _embedded(look, embed)
    if missing is not None:
        return look.ended(Outcome.MISS, missing)
    return await _nearest(look, verify)


async def _ruled(look: Look, embed: Embed) -> Reason | None:
    """Find the rule and enter its scope; the reason when the cache stays out of this question."""
    question = look.question
    book = process.rules.known()  # mostly, which spares a way to a thread and back
    if book is None:
        book = await in_database(process.rules.fresh)
    unsure = policy.by_example(book, look.text, question.tenant, question.model)
    look.step("rule")
    missing = await _text_embedded(look, embed, look.text, unsure) if unsure else None
    if missing is not None:
        return missing  # under a later rule it might be shared, against what the examples are there for
    like = {one.rule_id for one in look.examples if one.is_near}
    rule = policy.choose(book, look.text, question.tenant, question.model, like)
    if rule is None:
        return Reason.NO_RULE
    look.rule = rule
    if rule.mode == Mode.OFF:
        return Reason.RULE_OFF
    if question.temperature is not None and question.temperature > rule.max_temperature:
        return Reason.TEMPERATURE
    if wording.lasting(look.text) is Lasting.THIS_MOMENT:
        return Reason.OF_THIS_MOMENT
    look.enter_scope()
    if look.context and _is_strict_before(look, book):
        look.context = None
    return None


def _is_strict_before(look: Look, book: Sequence[policy.Rule]) -> bool:
    """Whether anything said before falls under a rule that never looks at meaning: its topic goes on."""
    question = look.question
    said = (canonical(turn) for turn in context.said_in(question.turns))
    ruled = (policy.choose(book, turn, question.tenant, question.model) for turn in said)
    return any(rule is not None and not rule.looks_at_meaning for rule in ruled)


async def _embedded(look: Look, embed: Embed) -> Reason | None:
    """Fill the vector; the reason when meaning does not apply or the embedder gives none."""
    if not (look.goes_by_meaning and look.question.embedder):
        return Reason.TIGHTENED if look.rule.is_exact_by_itself else Reason.NOT_STORED
    is_known = look.text_vector is not None and not look.context
    missing = None if is_known else await _text_embedded(look, embed, look.embedded)
    # What is known by now may be the last message's alone, which is not the whole conversation's.
    look.vector = None if missing else look.text_vector
    return missing


async def _text_embedded(
    look: Look, embed: Embed, text: str, unsure: Sequence[policy.Rule] = ()
) -> Reason | None:
    """Fill the text's vector and its likeness to the examples of `unsure`; the reason when nobody gives a vector."""
    if not (look.question.embedder and process.embedder_breaker.allows()):
        return Reason.EMBEDDER_FAILED
    look.waits_for = Dependency.EMBEDDER
    try:
        look.text_vector = _checked(await embed([text[:MAX_EMBEDDED_CHARS]]))
        if unsure:
            look.examples = await process.examples.compared(
                unsure, look.text_vector, look.question.embedder, embed
            )
    except Exception as error:  # whatever the caller's callable raises, the model can still answer
        is_away = isinstance(error, OSError)
        logger.warning("the embedder failed during a look-up: %s", error, exc_info=not is_away)
        process.embedder_breaker.failed()
        return Reason.EMBEDDER_FAILED
    finally:
        look.step("embed")
    look.waits_for = Dependency.STORE
    process.embedder_breaker.succeeded()
    return None


def _checked(vectors: Sequence[Sequence[float]]) -> tuple[float, ...]:
    (vector,) = vectors
    if not store.is_usable(vector):
        raise ValueError(
            f"the embedder must give up to {MAX_DIM} finite numbers, not {len(vector)}, and not all 0"
        )
    return tuple(vector)


async def _nearest(look: Look, verify: Verify | None) -> Decision:
    assert look.vector is not None
    neighbours = await in_database(_neighbours, look, look.vector)
    near = [hit.entry_id for hit in neighbours if hit.similarity >= look.rule.verify_similarity]
    refused = await in_database(complaints.refused, look.text, near) if near else frozenset()
    look.step("nearest")
    judgement = judge(look.rule, look.text, neighbours, refused, look.context or ())
    look.candidates = judgement.candidates
    look.step("guard")
    if judgement.unsure and verify is not None:
        judgement = await _verified(look, verify, judgement)
        look.candidates = judgement.candidates
    if judgement.hit is None:
        return look.ended(Outcome.MISS, judgement.reason)
    return _found(look, Outcome.HIT_SEMANTIC, judgement.reason, judgement.hit)


def _neighbours(look: Look, vector: Sequence[float]) -> list[Hit]:
    """The nearest of all that the question may find; of equals the one in the scope that comes first."""
    rule, embedder = look.rule, look.question.embedder
    found = [
        store.find_nearest(
            scope.digest(), embedder, vector, rule.ttl_s, rule.stale_s, is_shared=scope.sharing == "public"
        )
        for scope in look.searched
    ]
    nearest = sorted(chain.from_iterable(found), key=lambda hit: -hit.similarity)
    return nearest[: store.NUM_NEIGHBOURS]


async def _verified(look: Look, verify: Verify, judgement: Judgement) -> Judgement:
    """The judgement with the second opinion; whatever goes wrong with that leaves the neighbours unserved."""
    failed = replace(judgement, reason=Reason.VERIFIER_FAILED, unsure=())
    if not process.verifier_breaker.allows():
        return failed
    look.waits_for = Dependency.VERIFIER
    try:
        scores = await verify(judgement.pairs)
        if len(scores) != len(judgement.pairs) or not all(map(math.isfinite, scores)):
            raise ValueError(f"the verifier must give {len(judgement.pairs)} finite scores: {scores}")
    except NoVerifier:
        process.verifier_breaker.succeeded()
        return judgement
    except Exception as error:  # whatever the caller's callable raises, the model can still answer
        is_away = isinstance(error, OSError)
        logger.warning("the verifier failed during a look-up: %s", error, exc_info=not is_away)
        process.verifier_breaker.failed()
        return failed
    finally:
        look.step("verify")
    look.waits_for = Dependency.STORE
    process.verifier_breaker.succeeded()
    return second_opinion(judgement, scores)


def _breaker_of(dependency: Dependency) -> Breaker:
    match dependency:
        case Dependency.STORE:
            return process.store_breaker
        case Dependency.EMBEDDER:
            return process.embedder_breaker
        case Dependency.VERIFIER:
            return process.verifier_breaker


def _found(look: Look, outcome: Outcome, reason: Reason, hit: Hit) -> Decision:
    """A hit; under a shadow rule a miss that only tells what would have been served."""
    if look.rule.mode == Mode.SHADOW:
        return replace(look.ended(Outcome.MISS, Reason.SHADOW), would_hit=hit)
    return look.ended(outcome, Reason.STALE if hit.is_stale else reason, hit)
