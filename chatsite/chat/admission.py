"""Questions are counted against the quotas and get the rows of their answers in one transaction: all, or none.

For answers without a conversation; `store` does the same for those that have one. Knows rows; knows no flow.
"""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from django.db import transaction

from chatsite.accounts.quotas import admission
from chatsite.accounts.quotas.standing import Standing
from chatsite.chat import bounds, generations
from chatsite.chat.models import Generation
from chatsite.chat.turn import Turn
from chatsite.db import run_in_db
from chatsite.engines import served
from chatsite.errors import ReplyRefused
from chatsite.metrics import observe_refusal
from inference.types import EngineInfo

T = TypeVar("T")


async def admitted(turns: Sequence[Turn]) -> list[Turn]:
    """The turns of one caller, ready for `reply.begun`. Raises ReplyRefused, with nothing counted."""
    model = turns[0].model
    info = (await served(model)).chosen(model)
    standings = await counting_refusals(run_in_db(_admit, turns, info))
    return [replace(turn, standings=standings) for turn in turns]


async def counting_refusals(work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`; a refusal is counted on its way."""
    try:
        return await work
    except ReplyRefused as refusal:
        observe_refusal(refusal.code)
        raise


@transaction.atomic
def _admit(turns: Sequence[Turn], info: EngineInfo | None) -> tuple[Standing, ...]:
    caller = turns[0].caller
    admission.one_at_a_time(caller.user_id)
    for turn in turns:
        generations.queue(
            Generation(
                id=turn.generation,
                user_id=caller.user_id,
                api_key_id=caller.api_key,
                kv_conversation=turn.conversation,
            )
        )
    by_generation = {turn.generation: turn for turn in turns}
    return admission.admit_answers(
        caller, list(by_generation), lambda generation: _most_tokens(by_generation[generation], info)
    )


def _most_tokens(turn: Turn, info: EngineInfo | None) -> int:
    prompt = bounds.of_segments(turn.segments) + len(turn.tools.encode())
    return bounds.most_tokens(prompt, turn.sampling.max_tokens, info)
