"""What asks at once is counted one by one: nobody slips past a limit between the look and the row."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any
from uuid import uuid4

from chatsite.accounts.callers import caller_of_user
from chatsite.accounts.models import User
from chatsite.chat.ask import ask
from chatsite.chat.models import Generation, Message
from chatsite.chat.store import Question
from chatsite.chat.turn import Turn
from chatsite.db import run_in_db
from chatsite.errors import ReplyRefused
from inference.testing import script_text
from inference.types import Segment
from tests.chat.replies import reply

SLOW = script_text(tokens=200, delay_ms=20)


async def first_event(user: User, hold: asyncio.Event) -> str:
    """What a question over `/v1` came to; an accepted one stays in the making until `hold` is set."""
    turn = Turn(caller_of_user(user), uuid4(), (Segment("user", SLOW),))
    try:
        async with aclosing(reply(turn)) as events:
            await anext(events)
            await hold.wait()
    except ReplyRefused as refusal:
        return refusal.code
    return "accepted"


async def test_fifty_questions_at_once_do_not_pass_the_limit(engine: Any, user: User, config: Any) -> None:
    config(max_live_per_user=5)
    hold = asyncio.Event()
    asking = [asyncio.create_task(first_event(user, hold)) for _ in range(50)]
    while sum(task.done() for task in asking) < 45:
        await asyncio.sleep(0.02)
        if await run_in_db(Generation.objects.count) > 5:
            break
    hold.set()
    came_to = await asyncio.gather(*asking)
    assert sorted(came_to) == ["accepted"] * 5 + ["rate_limited"] * 45


async def test_questions_in_conversations_count_in_the_transaction_that_stores_them(
    engine: Any, user: User, config: Any
) -> None:
    config(max_live_per_user=3)
    questions = [Question(uuid4(), SLOW) for _ in range(20)]
    came_to = await asyncio.gather(
        *(ask(caller_of_user(user), question) for question in questions), return_exceptions=True
    )
    refused = [one for one in came_to if isinstance(one, ReplyRefused)]
    assert len(refused) == 17
    assert await run_in_db(Generation.objects.count) == 3
    assert await run_in_db(Message.objects.count) == 6, "nothing of a refused question is stored"
