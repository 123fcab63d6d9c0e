"""Answers as server-sent events: what a form begins with, its pieces and ends as they come, and how it finishes.

Keep-alives are comments. A failure in mid-stream, of any of the answers, is said and then the end. Knows no form.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from chatsite.accounts.grants import Grant, watch
from chatsite.chat.events import Accepted, Ended, Piece
from chatsite.chat.tail import AnswerEvent, Tail
from chatsite.errors import AccessEnded
from chatsite.sse import KEEP_ALIVE_S
from chatsite.v1.answers import Answer
from chatsite.v1.errors import told_of
from chatsite.v1.formats import KEEP_ALIVE, Form

# Headers wait so long for a refusal and for the cache's word; then the client is better off with a start.
HEAD_WAIT_S = 2.0


async def read_head(tail: Tail, num_answers: int) -> tuple[Accepted | None, list[AnswerEvent]]:
    """What was said when all answers were accepted, None when that takes too long; and what came meanwhile.

    Raises the refusal when there is one.
    """
    early: list[AnswerEvent] = []
    accepted: Accepted | None = None
    num_accepted = 0
    give_up_at = time.monotonic() + HEAD_WAIT_S
    while num_accepted < num_answers:
        coming = await tail.next(max(0.0, give_up_at - time.monotonic()))
        if coming is None:
            break
        if isinstance(coming[1], Accepted):
            accepted, num_accepted = coming[1], num_accepted + 1
        else:
            early.append(coming)
    return accepted, early


async def stream(
    form: Form, tail: Tail, early: Sequence[AnswerEvent], num_answers: int, grant: Grant
) -> AsyncGenerator[bytes]:
    """The bytes of the answers, while `grant` holds. Closing the generator cancels the generations."""
    try:
        with watch.watching(grant, lambda: tail.break_off(AccessEnded())):
            async with aclosing(_lines(form, tail, early, num_answers)) as lines:
                async for line in lines:
                    yield line
    except Exception as error:
        yield form.fail(told_of(error, "a stream"))
    finally:
        await tail.close()


async def _lines(
    form: Form, tail: Tail, early: Sequence[AnswerEvent], num_answers: int
) -> AsyncGenerator[bytes]:
    """Until all answers are complete. Raises what ends one of them."""
    for line in form.begin():
        yield line
    answers = [Answer() for _ in range(num_answers)]
    coming = deque(early)
    silent_since = time.monotonic()
    while not all(answer.ended for answer in answers):
        lines: list[bytes] = []
        match coming.popleft() if coming else await tail.next(KEEP_ALIVE_S):
            case index, Piece() as piece:
                answers[index].add(piece)
                lines = form.piece(index, piece)
            case index, Ended() as ended:
                answers[index].end(ended)
                lines = form.end(index, ended)
        if not lines and time.monotonic() - silent_since >= KEEP_ALIVE_S:
            lines = [KEEP_ALIVE]  # also while much is being made that can't be told yet, as a call
        for line in lines:
            silent_since = time.monotonic()
            yield line
    for line in form.finish(answers):
        yield line
