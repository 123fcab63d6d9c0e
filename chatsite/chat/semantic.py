"""The flow's view of the semantic cache: what is asked of it, within which time, and what is given to it.

The cache is optional: whatever goes wrong there is a miss. Knows `semcache.service` and, for answers under way,
`semcache.flights` as its only doors.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import takewhile
from uuid import UUID

from django.conf import settings
from django.db import transaction

from chatsite.chat import generations
from chatsite.chat.record import Record
from chatsite.chat.turn import Turn
from chatsite.db import run_in_db
from chatsite.engines import engines, served
from chatsite.metrics import observe_lookup
from inference.errors import EncoderFailed, EngineError, NotSupported
from inference.types import EngineInfo, Sampling, Segment
from semcache import flights, service
from semcache.service import Answer, Decision, Embed, Hit, NoVerifier, Question, Reason

logger = logging.getLogger(__name__)

REMEMBER_TIMEOUT_S = 2.0


@dataclass(frozen=True, slots=True)
class Looked:
    """A finished look-up: the hit, or what `remember` needs later.

    `leader` makes the answer when others may wait for the same; None when it is made for this question alone.
    """

    question: Question
    decision: Decision
    leader: UUID | None = None

    @property
    def hit(self) -> Hit | None:
        return self.decision.hit


async def look_up(turn: Turn) -> Looked | None:
    """None when the cache was not asked. It keeps its own time budget: late is a miss with a reason."""
    if not settings.CONFIG.cache_enabled or not (turn.cache.may_read or turn.cache.may_store):
        return None
    info, known = await engines().foremost(turn.model, turn.kv_owner, turn.segments), await served()
    if info is None or not turn.segments or turn.segments[-1].role != "user":
        return None
    question = question_of(turn, info, known.embedder)
    try:
        decision = await service.lookup(
            question, embedding_by(known.embedder), verify if known.verifier else None
        )
    except Exception:  # the cache is optional: its own bugs must not cost an answer
        logger.exception("the semantic cache failed")
        observe_lookup("bypass")
        return None
    observe_lookup(said_of(decision))
    return Looked(question, decision)


async def board(turn: Turn, looked: Looked) -> Looked:
    """Joins those who ask the same at this moment: who leads is known then, or the answer that one of them stored."""
    boarding = await flights.board(looked.decision, looked.question, turn.generation)
    if boarding is None:
        return replace(looked, leader=None)
    if boarding.hit is None:
        return replace(looked, leader=boarding.leader)
    hit = replace(looked.decision, outcome=service.Outcome.HIT_EXACT, reason=Reason.EXACT, hit=boarding.hit)
    return Looked(looked.question, hit)


async def land(turn: Turn, looked: Looked, record: Record, *, took_ms: float, is_whole: bool) -> None:
    """What is done with an answer that ended: a whole one is stored, once, however many waited for it."""
    leader = looked.leader
    if is_whole:
        if leader is None or await flights.land(leader):
            await _remember(turn, looked, record, took_ms)
            await disband(looked)  # only now: whoever asks in between must find one of the two
    elif leader == turn.generation:
        await disband(looked)
    elif leader is not None:
        await flights.leave(turn.generation)


async def depart(looked: Looked | None, *, trimmed_messages: int) -> None:
    """The engine has the leader's question: others may follow, unless a part of the history was left out."""
    if trimmed_messages:
        await disband(looked)
    elif looked is not None and looked.leader is not None:
        await flights.depart(looked.leader, settings.CONFIG.deadline_s)


async def disband(looked: Looked | None) -> None:
    """Nobody makes this answer any more; whoever waits for it begins anew."""
    if looked is not None and looked.leader is not None:
        await flights.disband(looked.leader)


async def _remember(turn: Turn, looked: Looked, record: Record, took_ms: float) -> None:
    """Gives a complete answer to the cache, which may decline it. One that another model made than the one that was
    looked up, because its engine was started again in between, is no answer to that question."""
    if record.revision != looked.question.model_revision:
        return
    answer = Answer(
        text=record.live.text,
        token_ids=tuple(record.token_ids),
        tokenizer=record.tokenizer,
        num_tokens=len(record.token_ids),
        took_ms=took_ms,
        generation=turn.generation,
        is_complete=True,
    )
    try:
        async with asyncio.timeout(REMEMBER_TIMEOUT_S):
            entry = await service.remember(looked.decision, looked.question, answer)
            if entry is not None:
                await run_in_db(forget_erased, turn.generation)
    except TimeoutError:
        logger.info("the semantic cache did not take the answer in time")
    except Exception:  # as above
        logger.exception("the semantic cache did not take the answer")


def forget_erased(generation: UUID) -> None:
    """Whoever erased the answer before something of it was written to the cache has not found that there."""
    with transaction.atomic():
        if generations.is_erased(generation):
            service.forget([generation])


def question_of(turn: Turn, info: EngineInfo, embedder: str) -> Question:
    """The cache's question: the last message as text, everything before it as a hash."""
    leading = leading_of(turn.segments)
    system = "\n".join(segment.text for segment in leading)
    before = turn.segments[len(leading) : -1]
    return Question(
        text=turn.segments[-1].text,
        history=history_hash(before),
        turns=turns_of(before),
        tenant=turn.caller.tenant,
        owner=turn.caller.owner,
        model=info.model,
        model_revision=info.revision,
        system_prompt=system,
        parameters=canonical(turn.sampling),
        temperature=turn.sampling.temperature,
        embedder=embedder,
        epoch=settings.CONFIG.cache_epoch,
        may_read=turn.cache.may_read,
        may_store=turn.cache.may_store,
        generation=turn.generation,
    )


def leading_of(segments: Sequence[Segment]) -> list[Segment]:
    """The system prompt. A later system message is history: where it stands changes the answer."""
    return list(takewhile(lambda segment: segment.role == "system", segments[:-1]))


def said_of(decision: Decision) -> str:
    """What the cache said, as headers and metrics tell it: a hit past its time is `stale-...`."""
    found = decision.outcome.value
    return found.replace("hit", "stale") if decision.hit is not None and decision.hit.is_stale else found


def turns_of(segments: Sequence[Segment]) -> tuple[str, ...]:
    """What was said and answered, in turn; () where it was not in turn."""
    roles = [segment.role for segment in segments]
    is_in_turn = roles == ["user", "assistant"] * (len(roles) // 2)
    return tuple(segment.text for segment in segments) if is_in_turn else ()


def history_hash(segments: Sequence[Segment]) -> str:
    """One name for the messages before the last one; "" when there are none."""
    if not segments:
        return ""
    listed = json.dumps([[segment.role, segment.text] for segment in segments], ensure_ascii=False)
    return hashlib.sha256(listed.encode()).hexdigest()


def canonical(sampling: Sampling) -> str:
    """Everything that changes the output and was given; equal requests give equal strings."""
    changing = replace(sampling, speculate=None)
    given = {name: value for name, value in asdict(changing).items() if value not in (None, ())}
    return json.dumps(given, sort_keys=True)


def embedding_by(embedder: str) -> Embed:
    """Gives vectors of that embedder only: the engine may have been started again with another one meanwhile."""

    async def embed(texts: list[str]) -> list[Sequence[float]]:
        try:
            made = await engines().embed(texts)
        except EncoderFailed as error:
            raise ValueError(error.message) from error
        except EngineError as error:
            raise ConnectionError(error.message) from error
        if made.embedder != embedder:
            raise ConnectionError(f"the engine embeds with {made.embedder} by now, not with {embedder}")
        return list(made.vectors)

    return embed


async def verify(pairs: list[tuple[str, str]]) -> list[float]:
    try:
        return await engines().verify(pairs)
    except NotSupported as error:  # an engine that was started again without one
        raise NoVerifier from error
    except EngineError as error:
        raise ConnectionError(error.message) from error
