"""What look-ups decided, kept for a while: rules are tried on it and thresholds are set by it.

What is kept: the time, the rule, the outcome and its numbers. The words of a question are kept only where the rule
shares its answer with others and they do not speak of their asker; nobody's name stands beside them. For all other
questions there is a reference to their own entry: the words are read there as long as the cache keeps them anyway, so
they go when the entry goes. Of questions that must leave no trace (temporary chats) nothing is kept.

Collected in memory and written in batches; a crash loses the last two seconds.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from semcache.decision import Candidate, Decision, Question
from semcache.text.agreement import agreement

KEPT_ROWS = 10_000
KEPT_DAYS = 7
FLUSH_AT_ROWS = 200
# While the database is away the oldest ones give way.
MAX_WAITING = 1000


@dataclass(frozen=True, slots=True)
class Looked:
    """One look-up. `neighbour` is the entry that was served, would have been, or came nearest."""

    rule_id: int | None
    outcome: str
    reason: str
    sharing: str
    tenant: str
    model: str
    scope: str
    prompt_sha256: str
    question: str = ""
    neighbour: int | None = None
    neighbour_question: str = ""
    similarity: float | None = None
    is_guarded: bool = False
    score: float | None = None
    agreement: float | None = None
    took_ms: float = 0.0
    generation: UUID | None = None


_COLUMNS = tuple(field.name for field in fields(Looked))
_TRIM = f"""
DELETE FROM semcache_cachelook
 WHERE asked_at < statement_timestamp() - interval '{KEPT_DAYS} days'
    OR id <= (SELECT max(id) FROM semcache_cachelook) - {KEPT_ROWS}"""  # noqa: S608 - both are this module's numbers
RECENT = """
SELECT look.asked_at, coalesce(nullif(look.question, ''), entry.question) AS question, look.tenant, look.model,
       look.rule_id, look.outcome, look.reason, look.similarity, look.is_guarded, look.score, look.agreement
  FROM semcache_cachelook look
  LEFT JOIN semcache_cacheentry entry USING (scope, prompt_sha256)
 WHERE look.question <> '' OR entry.id IS NOT NULL
 ORDER BY look.id DESC LIMIT %(limit)s"""


@dataclass(frozen=True, slots=True)
class Asked:
    """A look-up whose words are known, as rules are tried on it."""

    asked_at: datetime
    question: str
    tenant: str
    model: str
    rule_id: int | None
    outcome: str
    reason: str
    similarity: float | None
    is_guarded: bool
    score: float | None
    agreement: float | None


class QuestionLog:
    """Safe to use from the event loop and from database threads at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[Looked] = deque(maxlen=MAX_WAITING)

    def add(self, looked: Looked) -> bool:
        """Note one; True when it just filled a batch, which should be written now."""
        with self._lock:
            self._waiting.append(looked)
            return len(self._waiting) == FLUSH_AT_ROWS

    def flush(self) -> int:
        """Write what was noted; the number of rows. When the write fails they wait for the next one."""
        with self._lock:
            rows, self._waiting = list(self._waiting), deque(maxlen=MAX_WAITING)
        if not rows:
            return 0
        try:
            _write(rows)
        except Exception:
            with self._lock:
                self._waiting.extendleft(reversed(rows[-(MAX_WAITING - len(self._waiting)) :]))
            raise
        return len(rows)


def looked(decision: Decision, question: Question, answer: str | None = None) -> Looked | None:
    """What is kept of a look-up; None when nothing may be. `answer` is what the model said instead of a stored one."""
    if not question.may_store:
        return None
    is_shared = decision.is_storable and not question.history and decision.sharing in ("tenant", "public")
    found = decision.hit or decision.would_hit
    nearest = _told(decision.candidates, found.entry_id if found else None)
    return Looked(
        rule_id=decision.rule.id if decision.rule else None,
        outcome=decision.outcome.value,
        reason=decision.reason.value,
        sharing=decision.sharing,
        tenant=question.tenant,
        model=question.model,
        scope=decision.scope,
        prompt_sha256=decision.prompt_sha256,
        question=decision.text if is_shared else "",
        neighbour=found.entry_id if found else nearest.entry_id if nearest else None,
        neighbour_question=nearest.question if nearest and is_shared else "",
        similarity=found.similarity if found else nearest.similarity if nearest else None,
        is_guarded=nearest is not None and not all(verdict.passed for verdict in nearest.verdicts),
        score=nearest.score if nearest else None,
        agreement=agreement(found.answer, answer) if found is not None and answer is not None else None,
        took_ms=sum(ms for _, ms in decision.steps),
        # Beside words that others may see nothing says whose they are.
        generation=None if is_shared else question.generation,
    )


def recent(limit: int = 1000) -> list[Asked]:
    """The last look-ups whose words the cache has, newest first."""
    with connection.cursor() as cursor:
        cursor.execute(RECENT, {"limit": limit})
        return [Asked(*row) for row in cursor.fetchall()]


def _told(candidates: Iterable[Candidate], entry_id: int | None) -> Candidate | None:
    """The candidate that was chosen, else the nearest."""
    listed = list(candidates)
    return next((one for one in listed if one.entry_id == entry_id), listed[0] if listed else None)


def _write(rows: list[Looked]) -> None:
    placeholders = ", ".join(f"%({name})s" for name in _COLUMNS)
    sql = f"INSERT INTO semcache_cachelook (asked_at, {', '.join(_COLUMNS)}) VALUES (statement_timestamp(), {placeholders})"  # noqa: S608, E501
    values: list[dict[str, Any]] = [asdict(row) for row in rows]
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.executemany(sql, values)
        cursor.execute(_TRIM)
