"""What each rule did, hour by hour: look-ups, hits, and the tokens and the time that the hits saved.

Counted in memory and added to one row for each rule and hour; a crash loses the last two seconds. No row is written for
a question and nobody is named. Hours older than a month become days: the row of a day is that of its first hour, which
the others are added to. Days are UTC's. When to write is decided here, where (on which thread) by the caller.
"""

from __future__ import annotations

import threading
from collections.abc import Collection
from dataclasses import astuple, dataclass, fields
from datetime import datetime

from django.db import connection

from semcache.decision import Decision, Outcome

HOURS_KEPT_DAYS = 30
DAYS_KEPT = 400


@dataclass(slots=True)
class Tally:
    """A stale hit is an exact or a semantic one, too."""

    looks: int = 0
    exact_hits: int = 0
    semantic_hits: int = 0
    stale_hits: int = 0
    tokens_saved: int = 0
    ms_saved: float = 0.0

    def add(self, other: Tally) -> None:
        for name in COLUMNS:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    @property
    def hits(self) -> int:
        return self.exact_hits + self.semantic_hits


COLUMNS = tuple(field.name for field in fields(Tally))
_ADD_UP = ", ".join(f"{name} = known.{name} + excluded.{name}" for name in COLUMNS)
# In rule order, so that two processes that write at once never wait for each other in a circle. A rule that is gone
# takes its counts with it.
_ADD = f"""
INSERT INTO semcache_cacherulehour AS known (rule_id, hour, {", ".join(COLUMNS)})
SELECT rule.id, date_trunc('hour', statement_timestamp(), 'UTC'), {", ".join(f"new.{name}" for name in COLUMNS)}
  FROM unnest(%s::bigint[], {", ".join(["%s::bigint[]"] * (len(COLUMNS) - 1))}, %s::float8[])
    AS new (rule_id, {", ".join(COLUMNS)}) JOIN semcache_cacherule rule ON rule.id = new.rule_id
 ORDER BY rule.id
    ON CONFLICT (rule_id, hour) DO UPDATE SET {_ADD_UP}"""  # noqa: S608 - this module's own names
# One statement: killed, it has done nothing; a second one finds nothing left to add.
_ROLL_UP = f"""
WITH old AS (
     DELETE FROM semcache_cacherulehour
      WHERE hour < date_trunc('day', statement_timestamp() - interval '{HOURS_KEPT_DAYS} days', 'UTC')
        AND hour <> date_trunc('day', hour, 'UTC')
  RETURNING rule_id, date_trunc('day', hour, 'UTC') AS day, {", ".join(COLUMNS)})
INSERT INTO semcache_cacherulehour AS known (rule_id, hour, {", ".join(COLUMNS)})
SELECT rule_id, day, {", ".join(f"sum({name})" for name in COLUMNS)} FROM old GROUP BY rule_id, day ORDER BY 1, 2
    ON CONFLICT (rule_id, hour) DO UPDATE SET {_ADD_UP}"""  # noqa: S608 - the same
_TRIM = f"""
DELETE FROM semcache_cacherulehour
 WHERE hour < statement_timestamp() - interval '{DAYS_KEPT} days'"""  # noqa: S608 - the same
_LAST = f"""
SELECT rule.id, moment, {", ".join(f"coalesce(known.{name}, 0)" for name in COLUMNS)}
  FROM unnest(%(rule_ids)s::bigint[]) AS rule (id)
 CROSS JOIN generate_series(date_trunc('hour', statement_timestamp(), 'UTC') - (%(num)s - 1) * interval '1 hour',
                            date_trunc('hour', statement_timestamp(), 'UTC'), interval '1 hour') AS moment
  LEFT JOIN semcache_cacherulehour known ON known.rule_id = rule.id AND known.hour = moment
 ORDER BY moment"""  # noqa: S608 - the same


class HourCounter:
    """Safe to use from the event loop and from database threads at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tallies: dict[int, Tally] = {}

    def add(self, decision: Decision) -> bool:
        """Count a look-up; False where no rule looked."""
        if decision.rule is None or decision.outcome is Outcome.BYPASS:
            return False
        self._add({decision.rule.id: tally_of(decision)})
        return True

    def flush(self) -> int:
        """Write what was counted; the number of rules. When the write fails the counts stay for the next one."""
        with self._lock:
            tallies, self._tallies = self._tallies, {}
        if not tallies:
            return 0
        rules = sorted(tallies)
        columns = zip(*(astuple(tallies[rule_id]) for rule_id in rules), strict=True)
        try:
            with connection.cursor() as cursor:
                cursor.execute(_ADD, [rules, *map(list, columns)])
        except Exception:
            self._add(tallies)
            raise
        return len(rules)

    def _add(self, tallies: dict[int, Tally]) -> None:
        with self._lock:
            for rule_id, tally in tallies.items():
                self._tallies.setdefault(rule_id, Tally()).add(tally)


def tally_of(decision: Decision) -> Tally:
    """One look-up. A hit saves the tokens of its answer, and the time that they took less that of the look-up."""
    hit = decision.hit
    if hit is None:
        return Tally(looks=1)
    return Tally(
        looks=1,
        exact_hits=int(decision.outcome is Outcome.HIT_EXACT),
        semantic_hits=int(decision.outcome is Outcome.HIT_SEMANTIC),
        stale_hits=int(hit.is_stale),
        tokens_saved=hit.num_tokens,
        ms_saved=max(0.0, hit.took_ms - sum(ms for _, ms in decision.steps)),
    )


def last_hours(rule_id: int, num: int) -> list[tuple[datetime, Tally]]:
    """The last `num` hours of a rule, oldest first, the current one included."""
    return last_hours_of([rule_id], num)[rule_id]


def last_hours_of(rule_ids: Collection[int], num: int) -> dict[int, list[tuple[datetime, Tally]]]:
    """The same of several, read at once."""
    found: dict[int, list[tuple[datetime, Tally]]] = {rule_id: [] for rule_id in rule_ids}
    with connection.cursor() as cursor:
        cursor.execute(_LAST, {"rule_ids": list(found), "num": num})
        for rule_id, hour, *counts in cursor.fetchall():
            found[rule_id].append((hour, Tally(*counts)))
    return found


def roll_up() -> int:
    """Make days of the hours that are older than a month, and forget what is older than a year; the number of days."""
    with connection.cursor() as cursor:
        cursor.execute(_ROLL_UP)
        num_days = int(cursor.rowcount)
        cursor.execute(_TRIM)
    return num_days
