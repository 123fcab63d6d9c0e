"""The cache's only door: `lookup` before a question is answered, `remember` after, `evict` when an answer is bad.

The steps of a look-up stand in `pipeline`; here is what is counted, stored and taken back. Knows no users,
no conversations and no model; scopes are opaque, the embedder and the verifier are callables. A question with history
is looked up by its exact text and history, then by what of the history its answer hangs on: nothing, or all of it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from django.db import Error

from semcache import process
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
from semcache.pipeline import placed, tried
from semcache.quality import complaints, question_log, sharing
from semcache.quality.complaints import Complaint, Served
from semcache.storage import erasure, store
from semcache.storage.threads import in_database, set_executor
from semcache.text import context
from semcache.text.normalize import clean
from semcache.text.refusals import is_refusal

__all__ = [
    "Answer", "Candidate", "Complaint", "Decision", "Embed", "Hit", "NoVerifier", "Outcome", "Question", "Reason",
    "Served", "Verify", "approve",
    "complain", "evict", "flush_hits", "forget_rules", "lookup", "placed", "refresh", "remember", "set_executor",
    "tried",
]  # fmt: skip

logger = logging.getLogger(__name__)

MAX_ANSWER_CHARS = 200_000
MAX_QUESTION_CHARS = 20_000
REMEMBER_WITHIN_S = 3.0


async def lookup(question: Question, embed: Embed, verify: Verify | None = None) -> Decision:
    """What is stored for this question, within the time budget; the cache's own trouble is a miss with a reason.

    Without `verify` there is no second opinion, so nothing between the thresholds is served.
    """
    decision = await tried(question, embed, verify)
    # What a shadow rule would have served is noted beside the answer that was given.
    if decision.would_hit is None:
        process.note(question_log.looked(decision, question))
    if process.hours.add(decision):
        process.write_soon(is_full=decision.hit is not None and process.hits.add(decision.hit.entry_id))
    return decision


async def remember(decision: Decision, question: Question, answer: Answer) -> int | None:
    """Store a generated answer where `decision` says. The entry's id, or None when it may not be or was not stored."""
    if decision.would_hit is not None and answer.is_complete:
        process.note(question_log.looked(decision, question, answer.text))
    if not is_admissible(decision, question, answer) or not process.store_breaker.allows():
        return None
    try:
        async with asyncio.timeout(REMEMBER_WITHIN_S):
            entry_id = await in_database(sharing.keep, new_entry(decision, question, answer), decision)
    except (TimeoutError, Error):
        logger.warning("an answer could not be stored in the cache", exc_info=True)
        process.store_breaker.failed()
        return None
    process.store_breaker.succeeded()
    return entry_id


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
    if not is_worth_keeping(answer):
        return False
    return store.refresh(entry_id, created_at, model_revision, _cleaned(answer))


def forget(generations: Sequence[UUID], first_questions: Iterable[str] = ()) -> int:
    """Erase what was kept of these answers, in the caller's transaction; how many stored ones there were.

    `first_questions`: words that began a conversation; they go from the log of questions that are everybody's, too.
    """
    return erasure.forget(generations, first_questions)


def forget_person(owner: str, author: str) -> None:
    """Erase what staff keep under this `owner`'s name, and what they began as `author`, in the caller's transaction."""
    erasure.forget_person(owner, author)


def is_admissible(decision: Decision, question: Question, answer: Answer) -> bool:
    """Whether the rule and the caller let this answer be stored, and it is worth it."""
    return (
        decision.is_storable
        and question.may_store
        and is_worth_keeping(answer)
        and len(decision.text) <= MAX_QUESTION_CHARS
    )


def is_worth_keeping(answer: Answer) -> bool:
    """Whether it is whole, says something else than that there is no answer, and is not too long."""
    return (
        answer.is_complete
        and bool(clean(answer.text).strip())
        and not is_refusal(answer.text)
        and len(answer.text) <= MAX_ANSWER_CHARS
    )


def forget_rules() -> None:
    """This process has changed a rule: read the rules again at the next question."""
    process.rules.forget()


async def flush_hits() -> int:
    """Write the hits, hours and look-ups noted so far; how many entries were hit. For an orderly end of the process."""
    return await in_database(process.flush)


def new_entry(decision: Decision, question: Question, answer: Answer) -> store.NewEntry:
    """The row of an answer that is stored where `decision` says."""
    assert decision.rule is not None, "storable decisions have a rule"
    answer = _cleaned(answer)
    return store.NewEntry(
        scope=decision.scope,
        prompt_sha256=decision.prompt_sha256,
        question=decision.text,
        answer=answer.text,
        vector=None if _hangs_on_more(decision, question, answer.text) else decision.vector,
        context=decision.context,
        rule_id=decision.rule.id,
        sharing=decision.sharing,
        tenant=question.tenant,
        owner=question.owner,
        model_revision=question.model_revision,
        embedder=question.embedder,
        generation=answer.generation,
        token_ids=answer.token_ids,
        tokenizer=answer.tokenizer,
        num_tokens=answer.num_tokens,
        took_ms=answer.took_ms,
        ttl_s=decision.rule.ttl_s,
        is_for_today=context.is_for_today(decision.text, decision.context),
    )


def _cleaned(answer: Answer) -> Answer:
    """Ids stand for the text they were made with; a text that had to be cleaned is no longer that text."""
    text = clean(answer.text)
    return answer if text == answer.text else replace(answer, text=text, token_ids=())


def _hangs_on_more(decision: Decision, question: Question, answer: str) -> bool:
    """Whether the answer to what looked as if it stood alone takes up what was said before."""
    is_alone = bool(question.history) and not decision.context
    return is_alone and context.is_echoed(answer, decision.text, question.turns)
