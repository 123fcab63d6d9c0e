"""Rows of the ledger: one per answer, written in the transaction that ends it, and one per embedding request.

Where an answer ends before the engine has said what it took, its row is owed: it stands at once and is settled when the
figures are there (`chat.owed`). Otherwise rows never change. What nobody asked for, as an answer that is made again
behind the scenes, is the business line's: it has no user. Synchronous; knows no engine.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from chatsite import statements
from chatsite.accounts.ledger.prices import cost_of, price_of
from chatsite.accounts.models import UsageRecord
from chatsite.accounts.quotas import settlement
from chatsite.chat.events import Durations
from chatsite.chat.models import FINAL_STATES, Generation, Origin, State
from chatsite.chat.outcome import CANCELLED, Outcome
from chatsite.chat.turn import Caller
from inference.types import Timings, Usage

# The origin of answers that were made once more for the cache.
AGAIN = "again"
INSERT = statements.Insert(UsageRecord, on_conflict="ON CONFLICT DO NOTHING")
# The business line of the key that asked, else of the user.
TENANT = """
SELECT coalesce((SELECT tenant_id FROM accounts_apikey WHERE id = %s),
                (SELECT tenant_id FROM accounts_user WHERE id = %s))
"""


def book(generation: Generation, outcome: Outcome, durations: Durations) -> None:
    """Books a finished answer; booking it twice leaves the first row. Call inside the finishing transaction."""
    now = timezone.now()
    price = price_of(generation.model, now)
    _insert(
        generation=generation.pk,
        user_id=generation.user_id,
        api_key_id=generation.api_key_id,
        tenant_id=statements.value(TENANT, [generation.api_key_id, generation.user_id]),
        model=generation.model,
        origin=generation.origin,
        state=generation.state if generation.state in FINAL_STATES else outcome.state,
        is_owed=not outcome.has_usage,
        created_at=now,
        cost=cost_of(price, outcome.usage),
        currency=price.currency if price else "",
        saved_tokens=outcome.spared.generated_tokens,
        saved_ms=outcome.spared_ms,
        saved_cost=cost_of(price, _spared_work(outcome)),
        queue_ms=durations.queue_ms,
        prefill_ms=durations.prefill_ms,
        decode_ms=durations.decode_ms,
        delivery_ms=durations.delivery_ms,
        **_work(outcome.usage),
    )


def book_unfinished(erased: QuerySet[Generation]) -> None:
    """Books answers whose rows are about to go in mid-answer: what they took stays in the ledger."""
    for generation in erased.exclude(state__in=FINAL_STATES):
        book(generation, CANCELLED, Durations())


def book_embedding(caller: Caller, request: UUID, model: str, num_tokens: int) -> None:
    """Books a request for vectors, which has been answered."""
    now = timezone.now()
    work, price = Usage(prompt_tokens=num_tokens, prefilled_tokens=num_tokens), price_of(model, now)
    _insert(
        kind=UsageRecord.Kind.EMBEDDING,
        generation=request,
        user_id=caller.user_id,
        api_key_id=caller.api_key,
        tenant_id=int(caller.tenant),
        model=model,
        origin=Origin.MODEL,
        state=State.COMPLETE,
        created_at=now,
        cost=cost_of(price, work),
        currency=price.currency if price else "",
        **_work(work),
    )


def open_again(run: UUID, tenant: str, model: str) -> None:
    """An owed row for an answer that is about to be made again: a worker that dies leaves it to be settled."""
    _insert(
        generation=run,
        tenant_id=int(tenant),
        model=model,
        origin=AGAIN,
        state=State.INTERRUPTED,
        is_owed=True,
    )


@transaction.atomic
def settle(generation: UUID, usage: Usage, timings: Timings, state: State | None = None) -> bool:
    """Gives an owed row its figures, at the price of its own moment, and settles quotas; False when it has them.

    How a person's answer ended was known before; `state` is how one that was made again did.
    """
    row = UsageRecord.objects.select_for_update().filter(generation=generation, is_owed=True).first()
    if row is None:
        return False
    price = price_of(row.model, row.created_at)
    figures = _work(usage) | {
        "is_owed": False,
        "state": state if row.origin == AGAIN and state else row.state,
        "cost": cost_of(price, usage),
        "currency": price.currency if price else "",
        "queue_ms": timings.queue_s * 1000,
        "prefill_ms": timings.prefill_s * 1000,
        "decode_ms": timings.decode_s * 1000,
    }
    UsageRecord.objects.filter(pk=row.pk).update(**figures)
    settlement.settle(generation, 0)
    return True


@transaction.atomic
def lapse(generation: UUID) -> bool:
    """Leaves an owed row with what was seen of the answer: nobody knows more; False when it is not owed."""
    if not UsageRecord.objects.filter(generation=generation, is_owed=True).update(is_owed=False):
        return False
    settlement.settle(generation, 0)
    return True


def owed(limit: int) -> list[UsageRecord]:
    """Rows without the engine's figures, the oldest first."""
    return list(UsageRecord.objects.filter(is_owed=True).order_by("created_at")[:limit])


def _insert(**columns: Any) -> None:
    INSERT(UsageRecord(**columns))


def _work(usage: Usage) -> dict[str, int | float]:
    """The columns of what the engine did."""
    return {
        "prompt_tokens": usage.prompt_tokens,
        "reused_tokens": usage.reused_tokens,
        "prefilled_tokens": usage.prefilled_tokens,
        "generated_tokens": usage.generated_tokens,
        "unseen_tokens": usage.unseen_tokens,
        "peak_kv_bytes": usage.peak_kv_bytes,
        "block_seconds": usage.block_seconds,
        "device_seconds": usage.device_seconds,
    }


def _spared_work(outcome: Outcome) -> Usage:
    """What a stored answer took: by the row of the one that was stored, else only the tokens are known."""
    if outcome.spared_by is None:
        return outcome.spared
    row = UsageRecord.objects.filter(generation=outcome.spared_by, is_owed=False).first()
    if row is None:
        return outcome.spared
    return Usage(
        prompt_tokens=row.prompt_tokens,
        reused_prefix_tokens=row.reused_tokens,
        prefilled_tokens=row.prefilled_tokens,
        generated_tokens=row.generated_tokens,
        device_seconds=row.device_seconds,
    )
