"""THE flow: one question becomes one answer, whoever asked and wherever it comes from. Read `answer` first.

Every door goes through here: `/v1` through `begun(turns)`, conversations through `ask`, which stores first. Everything
accepted ends in exactly one `Ended`. Knows no transport; a task makes the answer, and doors follow its live text.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial

from django.conf import settings

from chatsite.chat import again_asked, flight, generations, outcome, semantic
from chatsite.chat.ending import cancel_in_engine, completed, kept, said, settled
from chatsite.chat.events import Accepted
from chatsite.chat.live import LiveAnswer
from chatsite.chat.models import State
from chatsite.chat.notices import Kind, board
from chatsite.chat.outcome import Outcome
from chatsite.chat.pace import Pace
from chatsite.chat.record import Record
from chatsite.chat.relay import relay, replay
from chatsite.chat.running import running
from chatsite.chat.semantic import Looked
from chatsite.chat.tail import Tail
from chatsite.chat.turn import Turn
from chatsite.db import run_in_db
from chatsite.engine import Engine
from chatsite.engines import engines
from chatsite.metrics import observe_refusal, observe_reply
from inference.errors import EngineError, ModelLoading
from inference.types import GenerateRequest, Submitted
from semcache.service import Hit
from semcache.service import Outcome as Found

# A core is back in seconds, a large model in a minute; longer is an outage that people should be told of.
LOADING_PATIENCE_S = 60.0
LOADING_STEP_S = 0.5
# The engine ends an answer within two steps; one that says nothing for so long is not waited for.
LAST_WORD_WITHIN_S = 2.0


def begun(turns: Sequence[Turn], pace: Pace) -> Tail:
    """What is said of the answers to `turns`, which were admitted. Its `next` raises the refusal of any.

    Closing it cancels those that are not complete.
    """

    async def abandon() -> None:
        await asyncio.gather(*(running().abandon(turn.generation) for turn in turns))

    tail = Tail(pace, on_close=abandon)
    for turn in turns:
        tail.add(running().begin(LiveAnswer(turn.generation), partial(answer, turn)))
    return tail


async def answer(turn: Turn, live: LiveAnswer) -> None:
    """The life of one answer: look up, else ask the engine, relay, and store the end, shielded."""
    record = Record(live, begun=turn.begun, model=turn.model)
    if (stored := turn.stored) is not None:
        live.say(Accepted(turn.generation, stored.conversation, stored.user_message, stored.answer))
    try:
        looked, ended_as = await kept(record, _produce(turn, record), lambda interrupted: (None, interrupted))
    except asyncio.CancelledError:
        await completed(_leave(turn, record))
        raise
    await completed(_conclude(turn, record, looked, ended_as))


async def _produce(turn: Turn, record: Record) -> tuple[Looked | None, Outcome]:
    """Makes the text, from the cache or by the engine."""
    looked = await semantic.look_up(turn)
    if looked is not None and looked.hit is not None:
        return looked, await _replay(turn, record, looked, looked.hit)
    if turn.cache.only_if_cached:
        return looked, outcome.not_cached()
    return await _generate(turn, record, looked)


async def _replay(turn: Turn, record: Record, looked: Looked, hit: Hit) -> Outcome:
    _accept_api(turn, record.live, looked)
    ended_as = await replay(looked.decision, hit, record)
    again_asked.after_hit(turn, looked)
    return replace(ended_as, model=looked.question.model)


async def _generate(turn: Turn, record: Record, looked: Looked | None) -> tuple[Looked | None, Outcome]:
    """By the engine for this question, or for somebody who asks the same at this moment."""
    info = await engines().foremost(turn.model, turn.kv_owner, turn.segments)
    if info is not None:
        record.made_by(info)
    columns = {"engine": info.engine, "model": info.model} if info else {}
    if not await run_in_db(generations.move, turn.generation, State.RUNNING, **columns):
        return looked, outcome.STOPPED  # before it began
    if looked is None or turn.is_offline:  # whoever followed bulk work would wait as long as it does
        return looked, await _lead(turn, record, None)
    return await _lead_or_follow(turn, record, looked)


async def _lead_or_follow(turn: Turn, record: Record, looked: Looked) -> tuple[Looked, Outcome]:
    """Until somebody's generation gives the answer; a leader that goes away is replaced by one of its followers."""
    num_failed = 0
    while True:
        looked = await semantic.board(turn, looked)
        if looked.hit is not None:
            return looked, await _replay(turn, record, looked, looked.hit)
        if looked.leader is None or looked.leader == turn.generation:
            ended_as = await _lead(turn, record, looked)
            # What was accepted as a follower can't be refused any more.
            return looked, replace(ended_as, refusal=None) if num_failed else ended_as
        followed = await flight.followed(looked.leader, record, lambda: _accept_follower(turn, record.live))
        if followed is None:
            continue
        num_failed += 1
        if num_failed == flight.MAX_FAILED or not flight.failed_unseen(followed, record):
            return looked, followed
        await semantic.disband(looked)


async def _lead(turn: Turn, record: Record, looked: Looked | None) -> Outcome:
    try:
        engine, submitted = await _submit(turn)
    except EngineError as error:
        await semantic.disband(looked)
        return outcome.of_refusal(error)
    if engine.info is not None:
        record.made_by(engine.info)
    record.prompt_tokens = submitted.prompt_tokens
    await semantic.depart(looked, trimmed_messages=submitted.trimmed_messages)
    _accept_api(turn, record.live, looked, submitted.trimmed_messages)
    try:
        async with aclosing(engine.client.attach(str(turn.generation))) as events:
            return await relay(events, record)
    except EngineError as error:
        return outcome.of_loss(error)


async def _submit(turn: Turn) -> tuple[Engine, Submitted]:
    """Hands the question to the engine. A stored one waits while the core is started again; `/v1` callers come back."""
    give_up_at = time.monotonic() + LOADING_PATIENCE_S
    while True:
        try:
            return await engines().submit(engine_request(turn), turn.model)
        except ModelLoading:
            if turn.stored is None or time.monotonic() >= give_up_at:
                raise
        await asyncio.sleep(LOADING_STEP_S)


async def _conclude(turn: Turn, record: Record, looked: Looked | None, ended_as: Outcome) -> None:
    """Stores the end, gives complete answers to the cache, and says the end."""
    settlement = await settled(record, ended_as)
    if settlement is None:
        return
    if ended_as.refusal is not None and turn.stored is None:
        observe_refusal(ended_as.refusal.code)
        record.live.fail(ended_as.refusal)
        return
    standing, durations = settlement
    if looked is not None and looked.hit is None:
        is_whole = standing is State.COMPLETE and ended_as.is_whole
        await semantic.land(turn, looked, record, took_ms=durations.making_ms, is_whole=is_whole)
    ended = await said(record, ended_as, standing, durations)
    observe_reply(ended, door="v1" if turn.stored is None else "socket")
    if turn.stored is not None:
        await board.changed(turn.caller.user_id, Kind.ANSWERED, [turn.stored.conversation])


async def _leave(turn: Turn, record: Record) -> None:
    """This process gives up: a conversation's answer is handed over, a `/v1` answer has lost its only reader."""
    if turn.stored is not None:
        await record.hand_over()
        return
    ended_as = await _cut_off(turn, record)
    settlement = await settled(record, ended_as)
    if settlement is not None:
        observe_reply(await said(record, ended_as, *settlement), door="v1")


async def _cut_off(turn: Turn, record: Record) -> Outcome:
    """Ends the engine's work at once, and hears from it what that took."""
    if not await cancel_in_engine(turn.generation):
        return outcome.CANCELLED
    try:
        async with (
            asyncio.timeout(LAST_WORD_WITHIN_S),
            aclosing(engines().attach(str(turn.generation), after=record.live.seq)) as events,
        ):
            return await relay(events, record)
    except (EngineError, TimeoutError):
        return outcome.CANCELLED


def _accept_api(turn: Turn, live: LiveAnswer, looked: Looked | None, trimmed_messages: int = 0) -> None:
    """A `/v1` question is accepted when nothing can refuse it any more, so its door can say in the headers what the
    cache said and what the model was not given."""
    if turn.stored is None:
        found = semantic.said_of(looked.decision) if looked else "bypass"
        age_s = looked.hit.age_s if looked and looked.hit else None
        live.say(
            Accepted(
                turn.generation,
                cache_outcome=found,
                cache_age_s=age_s,
                trimmed_messages=trimmed_messages,
            )
        )


def _accept_follower(turn: Turn, live: LiveAnswer) -> None:
    """Who follows an answer that is being made is told what an exact hit tells."""
    if turn.stored is None:
        live.say(Accepted(turn.generation, cache_outcome=Found.HIT_EXACT.value, cache_age_s=0))


def engine_request(turn: Turn) -> GenerateRequest:
    """The question as the engine is asked."""
    return GenerateRequest(
        generation_id=str(turn.generation),
        segments=(*turn.segments, turn.begun) if turn.begun else turn.segments,
        owner=turn.kv_owner,
        sampling=turn.sampling,
        priority=turn.priority,
        is_offline=turn.is_offline,
        deadline_s=settings.CONFIG.deadline_s,
        may_trim=turn.may_trim,
        continues_answer=turn.begun is not None,
        tools=turn.tools,
        tool_choice=turn.tool_choice,
    )
