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
from psycopg.sql import SQL, Identifier

from chatsite import statements
from chatsite.chat.models import ALLOWED_MOVES, FINAL_STATES, LIVE_STATES, Generation, State

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
# One statement, which is its own transaction: every answer comes through here.
MOVE = SQL("""
WITH moved AS (
  UPDATE chat_generation SET state = %s{columns} WHERE id = %s AND state = ANY(%s) RETURNING message_id
), told AS (
  UPDATE chat_message SET state = %s FROM moved WHERE chat_message.id = moved.message_id
)
SELECT count(*) FROM moved
""")
# What is read of a row that ends, in the model's order.
OF_ENDING = ("id", "message_id", "user_id", "api_key_id", "model", "origin", "state", "lease_owner")
HOLD = f"SELECT {', '.join(OF_ENDING)} FROM chat_generation WHERE id = %s FOR UPDATE"  # noqa: S608 - names of columns
FINISH = """
WITH ended AS (UPDATE chat_generation SET {columns} WHERE id = %s RETURNING message_id)
UPDATE chat_message SET text = %s, token_ids = %s::integer[], tokenizer = %s, state = coalesce(%s, state)
  FROM ended WHERE chat_message.id = ended.message_id
"""
AFTER_S = "statement_timestamp() + make_interval(secs => %s)"
INSERT = statements.Insert(Generation, {"lease_until": AFTER_S, "deadline_at": AFTER_S})
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


def queue(row: Generation) -> None:
    """Stores a generation that begins now and is this process's. By its row the answer is found after a crash."""
    row.lease_owner = lease_owner()
    INSERT(row, lease_until=settings.CONFIG.lease_s, deadline_at=settings.CONFIG.deadline_s)


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


def move(generation: UUID, to: State, **columns: str) -> bool:
    """Moves a generation and its message; False when it is in a state from which there is no such move."""
    sources = [state for state, targets in ALLOWED_MOVES.items() if to in targets]
    assigned = SQL("").join(SQL(", {} = %s").format(Identifier(name)) for name in columns)
    finished = SQL(", finished_at = statement_timestamp()" if to in FINAL_STATES else "")
    with connection.cursor() as cursor:
        cursor.execute(
            MOVE.format(columns=assigned + finished), [to, *columns.values(), generation, sources, to]
        )
        (num_moved,) = cursor.fetchone()
    return bool(num_moved)


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
        kept = [_columns(progress[generation]) for generation in ours]
        texts, ids, tokenizers = ([at[column] for at in kept] for column in range(3))
        cursor.execute(CHECKPOINT_TEXTS, [list(ours), texts, ids, tokenizers])
    return ours


def _columns(at: Progress) -> tuple[str, str, str]:
    """Text, ids and tokenizer. The ids as the text of an array: lists of unequal length are no array of arrays, and
    Django would look at each number."""
    return at.text, "{" + ",".join(map(str, at.token_ids)) + "}", at.tokenizer


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


@transaction.atomic(savepoint=False)
def finish(generation: UUID, ending: Ending, progress: Progress) -> tuple[State, Generation | None]:
    """Stores the answer with its final state.

    The state that stands, which an earlier stop may have set, and the row as it is then, locked in the transaction. The
    text is the owner's to store also after a stop from elsewhere: what the page has seen is what is kept.
    """
    held = statements.first(HOLD, [generation])
    if held is None:
        return State.STOPPED, None  # its conversation was erased
    row = Generation.from_db(None, OF_ENDING, held)
    if row.lease_owner != lease_owner():
        return State(row.state), row
    columns = ending.columns | {"stored_seq": progress.seq}
    if ending.state in ALLOWED_MOVES.get(State(row.state), ()):
        columns |= {
            "state": ending.state,
            "finish_reason": ending.finish_reason,
            "error_code": ending.error_code,
        }
    assigned = [f"{name} = %s" for name in columns]
    assigned += ["finished_at = statement_timestamp()"] if "state" in columns else []
    statements.changed(
        FINISH.format(columns=", ".join(assigned)),
        [*columns.values(), generation, *_columns(progress), columns.get("state")],
    )
    for name, value in columns.items():
        setattr(row, name, value)
    return State(row.state), row


def place_of(generation: UUID) -> tuple[int, UUID] | None:
    """Whose answer it is and in which conversation; None where it stands in none, or was erased."""
    kept = Generation.objects.filter(pk=generation, message__isnull=False)
    return kept.values_list("user_id", "message__conversation_id").first()


def is_erased(generation: UUID) -> bool:
    """Whether the row is gone; waits for an erasure that is under way."""
    with transaction.atomic():
        row = Generation.objects.select_for_update(no_key=True).filter(pk=generation)
        return row.values("pk").first() is None
