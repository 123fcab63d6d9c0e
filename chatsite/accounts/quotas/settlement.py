"""From what an answer held to what it used: once, whoever ends it and however often they try.

Called in the transaction that stores the end, where there is one. A window that is over meanwhile is settled where it
was held. Knows holds, counters and the ledger; knows no flow.
"""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import DateTimeField, ExpressionWrapper, F, Value
from django.db.models.functions import Now

from chatsite import statements
from chatsite.accounts.models import QuotaHold, QuotaUse

BATCH = 10_000
HAS_HOLD = "SELECT 1 FROM accounts_quotahold WHERE generation = %s"
BOOKED = "SELECT prompt_tokens, generated_tokens, is_owed FROM accounts_usagerecord WHERE generation = %s"
# Of two at a time one gets it.
TAKE_HOLD = "DELETE FROM accounts_quotahold WHERE generation = %s RETURNING uses, tokens"
CHARGE = """
WITH held AS (SELECT id FROM accounts_quotause WHERE id = ANY(%s) ORDER BY id FOR UPDATE)
UPDATE accounts_quotause AS counter
   SET requests = greatest(requests - %s, 0), tokens = tokens + %s, reserved_tokens = reserved_tokens - %s
  FROM held WHERE counter.id = held.id
"""
# Counters stay so long after their window; what is settled later finds none, and needs none.
KEPT_FOR = timedelta(hours=1)


def settle(generation: UUID, used_tokens: int) -> None:
    """Charges what the ledger booked; `used_tokens` where it has no row, because all rows were erased.

    A row that is owed, and of which nothing was seen, keeps its hold until the ledger is settled.
    """
    if statements.first(HAS_HOLD, [generation]) is None:
        return  # as where no quota is in force
    booked = statements.first(BOOKED, [generation])
    if booked is not None:
        prompt_tokens, generated_tokens, is_owed = booked
        if is_owed and not prompt_tokens:
            return
        used_tokens = prompt_tokens + generated_tokens
    _close(generation, requests=0, tokens=used_tokens)


def give_back(generation: UUID) -> None:
    """As if it had not been asked."""
    _close(generation, requests=1, tokens=0)


def settle_expired() -> int:
    """Charges in full what was held for answers that nobody ended, because nobody knows what they used; how many."""
    expired = QuotaHold.objects.filter(expires_at__lte=Now()).values_list("generation", "tokens")
    late = list(expired[:BATCH])
    for generation, tokens in late:
        settle(generation, tokens)
    return len(late)


def forget_old() -> int:
    """Deletes counters of windows that are over; how many."""
    ended_at = ExpressionWrapper(
        F("window_start") + F("window_s") * Value(timedelta(seconds=1)), output_field=DateTimeField()
    )
    old = QuotaUse.objects.alias(ended_at=ended_at).filter(
        window_start__lte=Now() - KEPT_FOR, ended_at__lte=Now() - KEPT_FOR
    )
    return QuotaUse.objects.filter(pk__in=old.values("pk")[:BATCH]).delete()[0]


@transaction.atomic(savepoint=False)
def _close(generation: UUID, *, requests: int, tokens: int) -> None:
    """Takes the hold away, gives `requests` back and charges `tokens`. Nothing where there is no hold any more."""
    hold = statements.first(TAKE_HOLD, [generation])
    if hold is not None:
        counters, held_tokens = hold
        statements.changed(CHARGE, [counters, requests, tokens, held_tokens])
