"""The cache's only door: `lookup` before a question is answered, `remember` after, `evict` when an answer is bad.

    rule -> scope -> exact -> nearest in scope -> thresholds and guard -> second opinion where unsure -> hit

Knows the order of these steps and what a failure means: a broken cache is a miss, never an error. Knows no users,
no conversations and no model; scopes are opaque, the embedder and the verifier are callables. A question with history
is looked up by its exact text and history, then by what of the history its answer hangs on: nothing, or all of it.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain
from uuid import UUID

from django.db import Error

from semcache import complaints, context, erasure, policy, question_log, sharing, store, wording
from semcache.breaker import Breaker
from semcache.complaints import Complaint, Served
from semcache.decision import (
    Answer,
    Candidate,
    Decision,
    Embed,
    Hit,
    NoVerifier,
    Outcome,
    Question,
    Reason,
    Verify,
)  # fmt: skip
from semcache.examples import ExampleBook
from semcache.hours import HourCounter
from semcache.judge import Judgement, judge, second_opinion
from semcache.limits import limits
from semcache.look import Dependency, Look
from semcache.normalize import canonical, clean
from semcache.policy import Mode
from semcache.question_log import QuestionLog
from semcache.refusals import is_refusal
from semcache.rulebook import RuleBook
from semcache.shared_index import MAX_DIM
from semcache.threads import in_database, set_executor
from semcache.usage import FLUSH_AFTER_S, HitCounter
from semcache.wording import Lasting

__all__ = [
    "Answer", "Candidate", "Complaint", "Decision", "Embed", "Hit", "NoVerifier", "Outcome", "Question", "Reason",
    "Served", "Verify", "approve",
    "complain", "evict", "flush_hits", "forget_rules", "lookup", "refresh", "remember", "set_executor", "tried",
]  # fmt: skip

logger = logging.getLogger(__name__)

MAX_ANSWER_CHARS = 200_000
MAX_QUESTION_CHARS = 20_000
# More than any embedder reads. What is longer is never found by meaning; only a rule's examples are compared with it.
MAX_EMBEDDED_CHARS = 4000
REMEMBER_WITHIN_S = 3.0

# This process's own.
rules = RuleBook()
examples = ExampleBook()
hits = HitCounter()
hours = HourCounter()
looks = QuestionLog()
store_breaker = Breaker()
embedder_breaker = Breaker()
verifier_breaker = Breaker()
_flushes: set[asyncio.Task[None]] = set()


async def lookup(question: Question, embed: Embed, verify: Verify | None = None) -> Decision:
    """What is stored for this question, within the time budget; the cache's own trouble is a miss with a reason.

    Without `verify` there is no second opinion, so nothing between the thresholds is served.
    """
    decision = await tried(question, embed, verify)
    if (
        decision.would_hit is None
    ):  # what a shadow rule would have served is noted beside the answer that was given
        _note(question_log.looked(decision, question))
    if hours.add(decision):
        _write_soon(is_full=decision.hit is not None and hits.add(decision.hit.entry_id))
    return decision


async def tried(question: Question, embed: Embed, verify: Verify | None = None) -> Decision:
    """What `lookup` would find, for somebody who does not ask but looks: nothing is counted."""
    look = Look(question, canonical(question.text))
    if not look.text:
        return look.ended(Outcome.BYPASS, Reason.EMPTY)
    if not store_breaker.allows():
        return look.ended(Outcome.BYPASS, Reason.RESTING)
    try:
        async with asyncio.timeout(limits().budget_s):
            decision = await _looked_up(look, embed, verify)
    except TimeoutError:
        _breaker_of(look.waits_for).failed()
        return look.ended(Outcome.MISS, Reason.TIMEOUT)
    except Error:
        logger.warning("the cache's store failed during a look-up", exc_info=True)
        store_breaker.failed()
        return look.ended(Outcome.MISS, Reason.STORE_FAILED)
    store_breaker.succeeded()
    return decision


async def remember(decision: Decision, question: Question, answer: Answer) -> int | None:
    """Store a generated answer where `decision` says. The entry's id, or None when it may not be or was not stored."""
    if decision.would_hit is not None and answer.is_complete:
        _note(question_log.looked(decision, question, answer.text))
    if not is_admissible(decision, question, answer) or not store_breaker.allows():
        return None
    try:
        async with asyncio.timeout(REMEMBER_WITHIN_S):
            entry_id = await in_database(sharing.keep, new_entry(decision, question, answer), decision)
    except (TimeoutError, Error):
        logger.warning("an answer could not be stored in the cache", exc_info=True)
        store_breaker.failed()
        return None
    store_breaker.succeeded()
    return entry_id


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


async def evict(entry_ids: Sequence[int]) -> int:
    """Delete entries; how many there were. Raises what the database raises: who asks for it must know."""
    return await in_database(store.delete, entry_ids)


async def complain(served: Served, why: Complaint) -> bool:
    """A stored answer was no answer to what was asked; False when its owner has no such entry in reach.

    Raises what the database raises: who complains must know.
    """
    return await in_database(complaints.complain, served, why)


async def approve(served: Served) -> None:
    """A stored answer was right for what was asked. Raises what the database raises."""
    await in_database(complaints.approve, served)


def refresh(entry_id: int, created_at: datetime, model_revision: str, answer: Answer) -> bool:
    """Replace the stored answer of that moment by a whole one that was made anew; False when there is no such entry
    any more, or the answer is none. For database threads."""
    text = clean(answer.text)
    is_sound = answer.is_complete and bool(text.strip()) and len(text) <= MAX_ANSWER_CHARS
    if not is_sound:
        return False
    # Ids stand for the text they were made with; a text that had to be cleaned is no longer that text.
    token_ids = answer.token_ids if text == answer.text else ()
    return store.refresh(
        entry_id, created_at, model_revision, replace(answer, text=text, token_ids=token_ids)
    )


def forget(generations: Sequence[UUID]) -> int:
    """Erase what was kept of these answers, in the caller's transaction; how many stored ones there were."""
    return erasure.forget(generations)


def is_admissible(decision: Decision, question: Question, answer: Answer) -> bool:
    """Whether the answer is whole, and the rule, the caller and the sizes let it be stored."""
    return (
        decision.is_storable
        and question.may_store
        and answer.is_complete
        and bool(clean(answer.text).strip())
        and not is_refusal(answer.text)
        and len(answer.text) <= MAX_ANSWER_CHARS
        and len(decision.text) <= MAX_QUESTION_CHARS
    )


def forget_rules() -> None:
    """This process has changed a rule: read the rules again at the next question."""
    rules.forget()


async def flush_hits() -> int:
    """Write the hits, hours and look-ups noted so far; how many entries were hit. For an orderly end of the process."""
    return await in_database(_flush)


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
    book = await in_database(rules.fresh)
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
    if not (look.question.embedder and embedder_breaker.allows()):
        return Reason.EMBEDDER_FAILED
    look.waits_for = Dependency.EMBEDDER
    try:
        look.text_vector = _checked(await embed([text[:MAX_EMBEDDED_CHARS]]))
        if unsure:
            look.examples = await examples.compared(unsure, look.text_vector, look.question.embedder, embed)
    except Exception as error:  # whatever the caller's callable raises, the model can still answer
        is_away = isinstance(error, OSError)
        logger.warning("the embedder failed during a look-up: %s", error, exc_info=not is_away)
        embedder_breaker.failed()
        return Reason.EMBEDDER_FAILED
    finally:
        look.step("embed")
    look.waits_for = Dependency.STORE
    embedder_breaker.succeeded()
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
    if not verifier_breaker.allows():
        return failed
    look.waits_for = Dependency.VERIFIER
    try:
        scores = await verify(judgement.pairs)
        if len(scores) != len(judgement.pairs) or not all(map(math.isfinite, scores)):
            raise ValueError(f"the verifier must give {len(judgement.pairs)} finite scores: {scores}")
    except NoVerifier:
        verifier_breaker.succeeded()
        return judgement
    except Exception as error:  # whatever the caller's callable raises, the model can still answer
        is_away = isinstance(error, OSError)
        logger.warning("the verifier failed during a look-up: %s", error, exc_info=not is_away)
        verifier_breaker.failed()
        return failed
    finally:
        look.step("verify")
    look.waits_for = Dependency.STORE
    verifier_breaker.succeeded()
    return second_opinion(judgement, scores)


def _breaker_of(dependency: Dependency) -> Breaker:
    match dependency:
        case Dependency.STORE:
            return store_breaker
        case Dependency.EMBEDDER:
            return embedder_breaker
        case Dependency.VERIFIER:
            return verifier_breaker


def _found(look: Look, outcome: Outcome, reason: Reason, hit: Hit) -> Decision:
    """A hit; under a shadow rule a miss that only tells what would have been served."""
    if look.rule.mode == Mode.SHADOW:
        return replace(look.ended(Outcome.MISS, Reason.SHADOW), would_hit=hit)
    return look.ended(outcome, Reason.STALE if hit.is_stale else reason, hit)


def new_entry(decision: Decision, question: Question, answer: Answer) -> store.NewEntry:
    """The row of an answer that is stored where `decision` says."""
    assert decision.rule is not None, "storable decisions have a rule"
    text = clean(answer.text)
    said_all = (decision.text, *context.said_in(decision.context))
    return store.NewEntry(
        scope=decision.scope,
        prompt_sha256=decision.prompt_sha256,
        question=decision.text,
        answer=text,
        vector=None if _hangs_on_more(decision, question, text) else decision.vector,
        context=decision.context,
        rule_id=decision.rule.id,
        sharing=decision.sharing,
        tenant=question.tenant,
        owner=question.owner,
        model_revision=question.model_revision,
        embedder=question.embedder,
        generation=answer.generation,
        # Ids stand for the text they were made with; a text that had to be cleaned is no longer that text.
        token_ids=answer.token_ids if text == answer.text else (),
        tokenizer=answer.tokenizer,
        num_tokens=answer.num_tokens,
        took_ms=answer.took_ms,
        ttl_s=decision.rule.ttl_s,
        is_for_today=any(wording.lasting(said) is not Lasting.AS_THE_RULE_SAYS for said in said_all),
    )


def _hangs_on_more(decision: Decision, question: Question, answer: str) -> bool:
    """Whether the answer to what looked as if it stood alone takes up what was said before."""
    is_alone = bool(question.history) and not decision.context
    return is_alone and context.is_echoed(answer, decision.text, question.turns)


def _note(looked: question_log.Looked | None) -> None:
    if looked is not None:
        _write_soon(is_full=looks.add(looked))


def _write_soon(*, is_full: bool) -> None:
    """See to it that somebody writes what is in memory: at once when a batch is full, else within two seconds."""
    loop = asyncio.get_running_loop()
    if is_full or not any(task.get_loop() is loop for task in _flushes):
        task = loop.create_task(_flush_after(0.0 if is_full else FLUSH_AFTER_S))
        _flushes.add(task)
        task.add_done_callback(_flushes.discard)


async def _flush_after(delay_s: float) -> None:
    await asyncio.sleep(delay_s)
    try:
        await in_database(_flush)
    except Error:
        logger.warning("hits and look-ups could not be written; they wait for the next one", exc_info=True)


def _flush() -> int:
    looks.flush()
    hours.flush()
    return hits.flush()
