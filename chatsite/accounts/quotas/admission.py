"""Counting before anything is done: all that is asked at once fits into every quota, or nothing of it is counted.

Call inside the transaction that makes the rows of the answers, with nothing but inserts after it: the counters are
locked until it ends, those of a business line for everybody in it. Knows counters; knows no text and no engine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db.models import F
from django.db.models.functions import Now

from chatsite.accounts.models import QuotaHold, QuotaUse, User
from chatsite.accounts.quotas.refusals import QuotaExceeded, too_many_live, unknown_account
from chatsite.accounts.quotas.rules import Limit, in_force
from chatsite.accounts.quotas.standing import Standing, standing
from chatsite.chat.models import LIVE_STATES, Generation
from chatsite.chat.turn import Caller

# Past its deadline an answer is ended within 15 s (`adoption.reap`), and its end is tried to be stored for 30 s.
SETTLED_WITHIN_S = 60.0


def one_at_a_time(user_id: int) -> None:
    """Holds the user's row until the transaction ends: whoever asks beside waits, and so does an erasure.

    Taken before every other lock of a transaction. Raises ReplyRefused for a user who is gone.
    """
    if not User.objects.select_for_update(no_key=True).filter(pk=user_id).values("pk"):
        raise unknown_account()


def admit_answers(
    caller: Caller, generations: Sequence[UUID], most_tokens: Callable[[UUID], int]
) -> tuple[Standing, ...]:
    """Like `admit`, for answers whose rows were made in this transaction, after `one_at_a_time`.

    Raises ReplyRefused when they are too many beside those that are in the making.
    """
    # Past its deadline an answer is dead whatever its row says; a crash must not lock its user out.
    live = Generation.objects.filter(
        user_id=caller.user_id, state__in=LIVE_STATES, deadline_at__gt=Now()
    ).count()
    if live > settings.CONFIG.max_live_per_user:
        raise too_many_live(live - len(generations))
    return admit(caller, generations, most_tokens)


def admit(
    caller: Caller, generations: Sequence[UUID], most_tokens: Callable[[UUID], int]
) -> tuple[Standing, ...]:
    """Counts one request for each and holds the tokens that each may use at most; where the caller stands then.

    `most_tokens` is asked only where a quota of tokens is in force. Raises QuotaExceeded.
    """
    limits = in_force(caller)
    if not limits:
        return ()
    counts_tokens = any(limit.max_tokens is not None for limit in limits)
    held = {generation: most_tokens(generation) if counts_tokens else 0 for generation in generations}
    uses = _locked(limits)
    before = [standing(limit, use) for limit, use in zip(limits, uses, strict=True)]
    if refusal := QuotaExceeded.of(before, len(held)):
        raise refusal
    _count(uses, held)
    return tuple(
        replace(one, requests=one.requests + len(held), held=one.held + sum(held.values())) for one in before
    )


def _locked(limits: Sequence[Limit]) -> list[QuotaUse]:
    """The counters of `limits`, locked in the one order in which everybody locks them.

    Those of a new window are made first, in an order of their own: nobody holds a lock while waiting there.
    """
    keys = [(limit.subject, limit.window_s, limit.starts_at) for limit in limits]
    subjects = {limit.subject for limit in limits}
    found = QuotaUse.objects.filter(
        subject__in=subjects, window_start__in={limit.starts_at for limit in limits}
    )
    missing = set(keys) - set(found.values_list("subject", "window_s", "window_start"))
    QuotaUse.objects.bulk_create(
        [QuotaUse(subject=key[0], window_s=key[1], window_start=key[2]) for key in sorted(missing)],
        ignore_conflicts=True,
    )
    by_key = {
        (use.subject, use.window_s, use.window_start): use for use in found.select_for_update().order_by("pk")
    }
    return [by_key[key] for key in keys]


def _count(uses: Sequence[QuotaUse], held: dict[UUID, int]) -> None:
    counters = [use.pk for use in uses]
    QuotaUse.objects.filter(pk__in=counters).update(
        requests=F("requests") + len(held), reserved_tokens=F("reserved_tokens") + sum(held.values())
    )
    expires_at = Now() + timedelta(seconds=settings.CONFIG.deadline_s + SETTLED_WITHIN_S)
    QuotaHold.objects.bulk_create(
        QuotaHold(generation=generation, uses=counters, tokens=tokens, expires_at=expires_at)
        for generation, tokens in held.items()
    )
