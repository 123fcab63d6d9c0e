"""State of generations in the database: moves, leases, checkpoints. The first final state wins.

Every change is a conditional update, and every time is the database's, so two processes can't both win and no clock
has to agree. Synchronous: callers go through `run_in_db`. Knows no engine and no transport.
"""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.db.models.functions import Now

from chatsite.chat.models import ALLOWED_MOVES, FINAL_STATES, LIVE_STATES, Generation, Message, State

CHECKPOINT_LEASES = """
UPDATE chat_generation AS row SET lease_until = statement_timestamp() + make_interval(secs => %s), stored_seq = at.seq
FROM unnest(%s::uuid[], %s::bigint[]) AS at(id, seq)
WHERE row.id = at.id AND row.lease_owner = %s AND row.state = ANY(%s) RETURNING row.id
"""
CHECKPOINT_TEXTS = """
UPDATE chat_message AS row SET text = at.text, token_ids = at.ids::integer[], tokenizer = at.tokenizer
FROM unnest(%s::uuid[], %s::text[], %s::text[], %s::text[]) AS at(generation, text, ids, tokenizer)
JOIN chat_generation ON chat_generation.id = at.generation WHERE row.id = chat_generation.message_id
"""
# Names this process in leases. Made once per process: a fork that leases must not be taken for its parent.
_owners: dict[int, str] = {}


def lease_owner() -> str:
    """Who this process is in leases: host, process id and a random part, because ids come back."""
    pid = os.getpid()
    if pid not in _owners:
        _owners[pid] = f"{socket.gethostname()[:60]}:{pid}:{secrets.token_hex(4)}"
    return _owners[pid]


def lease_until() -> Any:
    return Now() + timedelta(seconds=settings.CONFIG.lease_s)


@dataclass(frozen=True, slots=True)
class Progress:
    """What a checkpoint stores: the text up to the engine's event `seq`, and its ids."""

    text: str = ""
    token_ids: Sequence[int] = ()
    tokenizer: str = ""
    seq: int = 0


@dataclass(frozen=True, slots=True)
class Ending:
    """A final state with its reason, and columns of the generation that become known with it."""

    state: State
    finish_reason: str = ""
    error_code: str = ""
    columns: dict[str, Any] = field(default_factory=dict)


def move(generation: UUID, to: State, **columns: Any) -> bool:
    """Moves a generation and its message; False when it is in a state from which there is no such move."""
    sources = [state for state, targets in ALLOWED_MOVES.items() if to in targets]
    if to in FINAL_STATES:
        columns["finished_at"] = Now()
    with transaction.atomic():
        moved = Generation.objects.filter(pk=generation, state__in=sources).update(state=to, **columns)
        if moved:
            Message.objects.filter(generation=generation).update(state=to)
    return bool(moved)


def renew(generation: UUID) -> bool:
    """Prolongs this process's lease; False when the generation ended or belongs to another process."""
    mine = Generation.objects.filter(pk=generation, lease_owner=lease_owner(), state__in=LIVE_STATES)
    return bool(mine.update(lease_until=lease_until()))


def checkpoint(progress: Mapping[UUID, Progress]) -> set[UUID]:
    """Stores what there is of each and prolongs the leases; those that did not end and are this process's."""
    seqs = [at.seq for at in progress.values()]
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            CHECKPOINT_LEASES,
            [
                settings.CONFIG.lease_s,
                list(progress),
                seqs,
                lease_owner(),
                list(LIVE_STATES),
            ],
        )
        ours = {generation for (generation,) in cursor.fetchall()}
        kept = [progress[generation] for generation in ours]
        # Lists of unequal length are no array of arrays, so each travels as the text of one.
        ids = ["{" + ",".join(map(str, at.token_ids)) + "}" for at in kept]
        cursor.execute(
            CHECKPOINT_TEXTS, [list(ours), [at.text for at in kept], ids, [at.tokenizer for at in kept]]
        )
    return ours


def release(generation: UUID) -> bool:
    """Gives the lease back at once, so that another process adopts the generation without waiting."""
    mine = Generation.objects.filter(pk=generation, lease_owner=lease_owner(), state__in=LIVE_STATES)
    return bool(mine.update(lease_owner="", lease_until=Now()))


def adopt(generation: UUID) -> bool:
    """Takes an expired lease; False when another process was faster."""
    expired = Generation.objects.filter(pk=generation, state__in=LIVE_STATES, lease_until__lte=Now())
    return bool(expired.update(lease_owner=lease_owner(), lease_until=lease_until()))


def expired_leases(limit: int) -> list[UUID]:
    expired = Generation.objects.filter(state__in=LIVE_STATES, lease_until__lte=Now())
    return list(expired.order_by("lease_until").values_list("pk", flat=True)[:limit])


def overdue(grace_s: float, limit: int) -> list[UUID]:
    """Generations that should have ended `grace_s` seconds ago and did not."""
    late = Generation.objects.filter(
        state__in=LIVE_STATES, deadline_at__lte=Now() - timedelta(seconds=grace_s)
    )
    return list(late.values_list("pk", flat=True)[:limit])


def finish(generation: UUID, ending: Ending, progress: Progress) -> State:
    """Stores the answer with its final state; returns the state that stands, which an earlier stop may have set.

    The text is the owner's to store also after a stop from elsewhere: what the page has seen is what is kept.
    """
    with transaction.atomic():
        mine = Generation.objects.select_for_update(of=("self",)).filter(
            pk=generation, lease_owner=lease_owner()
        )
        row = mine.values("state").first()
        if row is None:
            states = Generation.objects.filter(pk=generation).values_list("state", flat=True)
            return State(states.first() or State.STOPPED)  # no row: its conversation was erased
        mine.update(stored_seq=progress.seq, **ending.columns)
        _store_text(generation, progress)
        if move(generation, ending.state, finish_reason=ending.finish_reason, error_code=ending.error_code):
            return ending.state
    return State(row["state"])


def is_erased(generation: UUID) -> bool:
    """Whether the row is gone; waits for an erasure that is under way."""
    with transaction.atomic():
        row = Generation.objects.select_for_update(no_key=True).filter(pk=generation)
        return row.values("pk").first() is None


def _store_text(generation: UUID, progress: Progress) -> None:
    Message.objects.filter(generation=generation).update(
        text=progress.text, token_ids=list(progress.token_ids), tokenizer=progress.tokenizer
    )
