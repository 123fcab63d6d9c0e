"""Stored answers that serve suspiciously many different questions: the first sign of a cache that matches everything.

Reads the log of look-ups. Whether such an answer is wrong, only a person can say: an honest favourite looks the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.db import connection

# Of a rule's last hits by meaning; fewer different questions than this say nothing.
NUM_HITS = 1000
MIN_QUESTIONS = 20
MAX_SHARE = 0.5

_SUSPECTS = """
WITH hit AS (SELECT rule_id, neighbour, prompt_sha256,
                    row_number() OVER (PARTITION BY rule_id ORDER BY id DESC) AS place
               FROM semcache_cachelook WHERE outcome = 'hit-semantic'),
     served AS (SELECT rule_id, neighbour, count(DISTINCT prompt_sha256) AS questions, count(*) AS hits
                  FROM hit WHERE place <= %(num_hits)s GROUP BY rule_id, neighbour),
     shared AS (SELECT *, hits::float8 / sum(hits) OVER (PARTITION BY rule_id) AS share FROM served)
SELECT neighbour, rule.name, questions, share FROM shared JOIN semcache_cacherule rule ON rule.id = rule_id
 WHERE questions >= %(min_questions)s AND share > %(max_share)s
   AND EXISTS (SELECT FROM semcache_cacheentry entry WHERE entry.id = neighbour)
 ORDER BY share DESC, neighbour"""


@dataclass(frozen=True, slots=True)
class Suspect:
    """An entry that gave `share` of its rule's last answers by meaning, to so many different questions."""

    entry_id: int
    rule: str
    num_questions: int
    share: float

    @property
    def percent(self) -> str:
        return f"{self.share:.0%}"


def suspects() -> list[Suspect]:
    """The entries that are still there, the most suspicious first."""
    with connection.cursor() as cursor:
        cursor.execute(
            _SUSPECTS, {"num_hits": NUM_HITS, "min_questions": MIN_QUESTIONS, "max_share": MAX_SHARE}
        )
        return [Suspect(*row) for row in cursor.fetchall()]
