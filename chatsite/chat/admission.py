"""Questions are counted against the quotas and get the rows of their answers in one transaction: all, or none.

For answers without a conversation; `store` does the same for those that have one. Knows rows; knows no flow.
"""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, TypeVar

from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now

from chatsite.accounts.quotas import admission
from chatsite.accounts.quotas.standing import Standing
from chatsite.chat import bounds, generations
from chatsite.chat.models import Generation
from chatsite.chat.turn import Turn
from chatsite.db import run_in_db
from chatsite.engine import engine_info
from chatsite.errors import ReplyRefused
from chatsite.metrics import observe_refusal
from inference.types import EngineInfo

T = TypeVar("T")


async def admitted(turns: Sequence[Turn]) -> list[Turn]:
    """The turns of one caller, ready for `reply`. Raises ReplyRefused, with nothing counted."""
    standings = await counting_refusals(run_in_db(_admit, turns, await engine_info()))
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
    # By these rows the answers are found after a crash.
    Generation.objects.bulk_create(
        Generation(
            id=turn.generation,
            user_id=caller.user_id,
            api_key_id=caller.api_key,
            kv_conversation=turn.conversation,
            lease_owner=generations.lease_owner(),
            lease_until=generations.lease_until(),
            deadline_at=Now() + timedelta(seconds=settings.CONFIG.deadline_s),
        )
        for turn in turns
    )
    by_generation = {turn.generation: turn for turn in turns}
    return admission.admit_answers(
        caller, list(by_generation), lambda generation: _most_tokens(by_generation[generation], info)
    )


def _most_tokens(turn: Turn, info: EngineInfo | None) -> int:
    prompt = bounds.of_segments(turn.segments) + len(turn.tools.encode())
    return bounds.most_tokens(prompt, turn.sampling.max_tokens, info)
