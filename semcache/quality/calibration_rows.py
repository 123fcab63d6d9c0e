"""What is known of a rule's answers when its thresholds are set: checks, shadow look-ups, complaints, and the log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import connection

from semcache.quality.calibration import Checked, Seen

# Of the words in common, from which an answer counts as the one that a shadow rule would have served. A proxy, as is
# the comparison of sampled answers.
AGREES_FROM = 0.8

# Thumbs that are up are no report of anything. Who asked afresh stands among the complaints only, and so does what was
# complained of before checks were kept; a pair that has a check is told by that.
_CHECKED = """
SELECT similarity, score, is_wrong, kind = 'sampled' FROM semcache_cachecheck
 WHERE rule_id = %(rule_id)s AND similarity IS NOT NULL AND (kind = 'sampled' OR is_wrong)
UNION ALL
SELECT similarity, score, agreement < %(agrees_from)s, true FROM semcache_cachelook
 WHERE rule_id = %(rule_id)s AND similarity IS NOT NULL AND agreement IS NOT NULL
UNION ALL
SELECT DISTINCT ON (complaint.id) look.similarity, look.score, true, false
  FROM semcache_cachelook look
  JOIN semcache_cacheentry entry ON entry.id = look.neighbour
  JOIN semcache_cachecomplaint complaint ON complaint.scope = entry.scope
   AND complaint.stored_sha256 = entry.prompt_sha256 AND complaint.asked_sha256 = look.prompt_sha256
 WHERE look.rule_id = %(rule_id)s AND look.outcome = 'hit-semantic' AND look.similarity IS NOT NULL
   AND complaint.why = 'asked-fresh'"""
_SEEN = """
SELECT similarity, score FROM semcache_cachelook
 WHERE rule_id = %(rule_id)s AND similarity IS NOT NULL AND NOT is_guarded AND outcome <> 'hit-exact'"""


def checked(rule_id: int) -> list[Checked]:
    """What was judged of the rule's answers by meaning, as far back as it is kept."""
    return [Checked(*row) for row in _rows(_CHECKED, {"rule_id": rule_id, "agrees_from": AGREES_FROM})]


def seen(rule_id: int) -> list[Seen]:
    """The look-ups by meaning in the log to whose nearest neighbour the guard did not object."""
    return [Seen(*row) for row in _rows(_SEEN, {"rule_id": rule_id})]


def _rows(sql: str, values: dict[str, Any]) -> Sequence[Any]:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return list(cursor.fetchall())
