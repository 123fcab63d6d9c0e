"""What staff may do to stored answers, whatever the door: each acts at once and writes its audit line.

Parses nothing: the admin gives ids and has checked the permission that the act names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection, transaction
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from semcache.admin.audit import hashed, note_each, note_entries, note_many
from semcache.admin.evict import Chosen, evict_all
from semcache.admin.forms import CacheEntryForm
from semcache.models import CacheEntry
from semcache.quality import complaints, promotion
from semcache.storage import store
from semcache.text import context

# The line by which a marked answer is known again when it is long gone.
WRONG_HIT = "wrong hit: evicted"
# The time to live counts from `created_at`, so to renew is to say that the answer is right as of now. What is said of
# today ends with it all the same.
RENEW = f"""
UPDATE semcache_cacheentry e
   SET created_at = statement_timestamp(),
       expires_at = least(statement_timestamp() + r.ttl_s * interval '1 second',
                          CASE WHEN e.id = ANY(%(for_today)s) THEN {store.END_OF_DAY} END)
  FROM semcache_cacherule r
 WHERE r.id = e.rule_id AND e.id = ANY(%(ids)s)"""  # noqa: S608 - the cache's own texts


@dataclass(frozen=True, slots=True)
class Act:
    """`permission` is Django's verb for entries. `done` formats with the number of entries."""

    label: Any
    done: Any
    permission: str
    run: Callable[[HttpRequest, Sequence[int]], int]

    def __call__(self, request: HttpRequest, entry_ids: Sequence[int]) -> int:
        """How many entries there were. The change and its audit lines are there together or not at all."""
        with transaction.atomic():
            found = CacheEntry.objects.select_for_update().filter(pk__in=entry_ids).order_by("pk")
            return self.run(request, list(found.values_list("pk", flat=True)))


def _evict(request: HttpRequest, ids: Sequence[int]) -> int:
    note_entries(request, ids, "evicted", is_deletion=True)
    return store.delete(ids)


def _wrong_hit(request: HttpRequest, ids: Sequence[int]) -> int:
    note_entries(request, ids, WRONG_HIT, is_deletion=True)
    return complaints.mark_wrong(ids)


def _renew(request: HttpRequest, ids: Sequence[int]) -> int:
    old = CacheEntry.objects.filter(pk__in=ids).only("question", "context", "expires_at")
    note_each(
        request, {entry.pk: f"renewed: expired at {entry.expires_at.isoformat()} before" for entry in old}
    )
    values: dict[str, Any] = {
        "ids": list(ids),
        "for_today": [entry.pk for entry in old if context.is_for_today(entry.question, entry.context)],
        "zone": timezone.get_current_timezone_name(),
    }
    with connection.cursor() as cursor:
        cursor.execute(RENEW, values)
        return int(cursor.rowcount)


def _pin(request: HttpRequest, ids: Sequence[int]) -> int:
    note_entries(request, ids, "is_pinned: True")
    return CacheEntry.objects.filter(pk__in=ids).update(is_pinned=True)


def _unpin(request: HttpRequest, ids: Sequence[int]) -> int:
    note_entries(request, ids, "is_pinned: False")
    return CacheEntry.objects.filter(pk__in=ids).update(is_pinned=False)


def _promote(request: HttpRequest, ids: Sequence[int]) -> int:
    promoted = promotion.promote(ids)
    note_entries(request, promoted, "promoted: public from now on")
    return len(promoted)


ACTS = {
    "evict": Act(_("Evict"), _("Evicted: %d."), "delete", _evict),
    "wrong-hit": Act(_("Wrong hit"), _("Marked as wrong hits and evicted: %d."), "delete", _wrong_hit),
    "renew": Act(_("Renew"), _("Renewed: %d."), "change", _renew),
    "pin": Act(_("Pin"), _("Pinned: %d."), "change", _pin),
    "unpin": Act(_("Unpin"), _("Unpinned: %d."), "change", _unpin),
    "promote": Act(_("Promote"), _("Made public: %d."), "change", _promote),
}


def keep_edited(entry: CacheEntry) -> None:
    """Ids stand for the text they were made with: an edited text has none and is read anew. No model made it."""
    entry.token_ids, entry.tokenizer, entry.num_tokens, entry.took_ms = [], "", 0, 0.0
    entry.may_be_stale = False
    entry.save(update_fields=["answer", "token_ids", "tokenizer", "num_tokens", "took_ms", "may_be_stale"])


def edited(form: CacheEntryForm) -> str:
    """What the audit log says of an edited answer."""
    return f"answer: {hashed(form.initial['answer'])} -> {hashed(form.cleaned_data['answer'])}"


def evict_many(request: HttpRequest, chosen: Chosen) -> int:
    """Evicts what was chosen by what it has in common; how many answers there were."""
    entries = chosen.entries()
    note_many(request, CacheEntry, f"evicted {entries.count()}: {chosen}", is_deletion=True)
    return evict_all(entries)
