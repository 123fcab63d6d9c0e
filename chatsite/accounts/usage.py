"""The usage ledger: one row per finished answer or request for vectors, in the transaction that finishes it."""

from __future__ import annotations

from uuid import UUID

from chatsite.accounts.models import ApiKey, UsageRecord, User
from chatsite.chat.events import Counts, Durations
from chatsite.chat.models import Generation, Origin, State
from chatsite.chat.turn import Caller


def record(
    generation: Generation,
    counts: Counts,
    durations: Durations,
    *,
    peak_kv_bytes: int = 0,
    block_seconds: float = 0.0,
) -> None:
    """Books the finished `generation`; booking it twice leaves one row. Call inside the finishing transaction."""
    UsageRecord.objects.bulk_create(
        [
            UsageRecord(
                generation=generation.pk,
                user_id=generation.user_id,
                api_key_id=generation.api_key_id,
                tenant_id=_tenant_of(generation),
                model=generation.model,
                origin=generation.origin,
                state=generation.state,
                prompt_tokens=counts.prompt_tokens,
                reused_tokens=counts.reused_tokens,
                generated_tokens=counts.generated_tokens,
                peak_kv_bytes=peak_kv_bytes,
                block_seconds=block_seconds,
                queue_ms=durations.queue_ms,
                prefill_ms=durations.prefill_ms,
                decode_ms=durations.decode_ms,
                delivery_ms=durations.delivery_ms,
            )
        ],
        ignore_conflicts=True,
    )


def record_embedding(caller: Caller, request: UUID, model: str, num_tokens: int) -> None:
    """Books one request for vectors."""
    UsageRecord.objects.create(
        kind=UsageRecord.Kind.EMBEDDING,
        generation=request,
        user_id=caller.user_id,
        api_key_id=caller.api_key,
        tenant_id=int(caller.tenant),
        model=model,
        origin=Origin.MODEL,
        state=State.COMPLETE,
        prompt_tokens=num_tokens,
        prefilled_tokens=num_tokens,
    )


def _tenant_of(generation: Generation) -> int:
    """The business line of the key that asked, else of the user."""
    if generation.api_key_id is not None:
        of_key = ApiKey.objects.filter(pk=generation.api_key_id).values_list("tenant_id", flat=True).first()
        if of_key is not None:
            return of_key
    return User.objects.values_list("tenant_id", flat=True).get(pk=generation.user_id)
