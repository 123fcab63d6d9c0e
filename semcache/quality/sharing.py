"""What becomes of an answer under a rule that shares: stored where its asker may store it, and counted.

Synchronous, for database threads. Knows how much one owner may put where others find it; what a rule and the question
allow was decided by the look-up.
"""

from __future__ import annotations

from dataclasses import replace

from django.db import connection

from semcache.decision import Decision
from semcache.limits import limits
from semcache.quality import promotion
from semcache.quality.promotion import Asking
from semcache.storage import store
from semcache.storage.store import NewEntry

# Whatever of an owner's came under a sharing rule within the hour, kept private or not; no more rows are read than say
# that it is too much.
_SHARED_LATELY = """
SELECT count(*) FROM (
       SELECT 1 FROM semcache_cacheentry e JOIN semcache_cacherule r ON r.id = e.rule_id
        WHERE e.tenant = %(tenant)s AND e.owner = %(owner)s AND r.sharing <> 'private'
          AND e.created_at > statement_timestamp() - interval '1 hour'
        LIMIT %(limit)s) AS lately"""


def keep(entry: NewEntry, decision: Decision) -> int | None:
    """Store the answer, counting towards promotion where the rule promotes; its id, None when a younger one is there.

    An owner who has shared too much within the hour keeps it: nobody fills or steers what others are served.
    """
    is_shared = entry.sharing != "private" or bool(decision.public_scope)
    is_too_much = is_shared and has_shared_enough(entry.tenant, entry.owner)
    if is_too_much:
        entry = replace(entry, scope=decision.own_scope, sharing="private")
    entry_id = store.insert(entry)
    if entry_id is not None and decision.public_scope and not is_too_much:
        promotion.note(
            Asking(
                scope=decision.public_scope,
                prompt_sha256=entry.prompt_sha256,
                rule_id=entry.rule_id,
                ttl_s=entry.ttl_s,
                tenant=entry.tenant,
                owner=entry.owner,
                entry_id=entry_id,
                generation=entry.generation,
            )
        )
    return entry_id


def has_shared_enough(tenant: str, owner: str) -> bool:
    """Whether the owner's share of the hour is used up."""
    most = limits().shared_per_owner_per_hour
    with connection.cursor() as cursor:
        cursor.execute(_SHARED_LATELY, {"tenant": tenant, "owner": owner, "limit": most})
        return int(cursor.fetchone()[0]) >= most
