"""Whether a caller may ask now: for the time being a cap on answers in the making per user.

Knows rows only; a refusal is a 429, because it is this caller's own share that is used up (a full engine is a 503).
"""

from __future__ import annotations

from django.conf import settings
from django.utils import timezone

from chatsite.chat.models import LIVE_STATES, Generation
from chatsite.chat.turn import Caller
from chatsite.db import run_in_db
from chatsite.errors import ReplyRefused

RETRY_AFTER_S = 2.0


async def check(caller: Caller, num_answers: int = 1) -> None:
    """Returns when the caller may ask for so many answers. Raises ReplyRefused with 429 otherwise."""
    live = await run_in_db(_num_live, caller.user_id)
    if live + num_answers > settings.CONFIG.max_live_per_user:
        raise ReplyRefused(
            "rate_limited",
            f"{live} answers are in the making for this account; wait for one to end.",
            status=429,
            retry_after_s=RETRY_AFTER_S,
        )


def _num_live(user_id: int) -> int:
    # Past its deadline an answer is dead whatever its row says; a crash must not lock its user out.
    return Generation.objects.filter(
        user_id=user_id, state__in=LIVE_STATES, deadline_at__gt=timezone.now()
    ).count()
