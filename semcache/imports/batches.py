"""Imports of answers: what is begun on a page is stored by a worker, batch by batch.

Each batch goes with its progress in one transaction: a worker may be killed, late, or one of two, and no row is stored
twice or left out. Knows neither files nor pages; which rows may be stored is `import_rows`' business.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.db import OperationalError, connection, transaction
from django.db.models.functions import Now

from semcache import lending
from semcache.imports.file import Row
from semcache.imports.rows import Judged, NobodyToAsk, Terms, judged
from semcache.models import CacheImport
from semcache.storage import store
from semcache.text.normalize import clean

logger = logging.getLogger(__name__)

State = CacheImport.State
BATCH = 64
# What could not be stored by then (no engine, no worker) is given up: the file is still with whoever brought it.
GIVEN_UP_AFTER = timedelta(days=1)
KEPT = 100

UNFINISHED = (State.WAITING, State.RUNNING)
# The rows stay in the database: a worker needs no more than a batch of them. Those that were refused at the start are
# counted, but not among them.
_NEXT = """
SELECT jsonb_path_query_array(rows, '$[$first to $last]',
       jsonb_build_object('first', first, 'last', first + %(batch)s - 1))
  FROM (SELECT rows, num_done + num_refused - (num_rows - jsonb_array_length(rows)) AS first
          FROM semcache_cacheimport WHERE id = %(id)s) AS import"""


def start(file_name: str, rows: Sequence[Judged], terms: Terms) -> CacheImport:
    """An import for a worker: of the rows that were not refused."""
    accepted = [[clean(one.row.question), clean(one.row.answer)] for one in rows if one.why is None]
    _forget_old()
    return CacheImport.objects.create(
        rule_id=terms.rule_id,
        tenant=terms.tenant,
        system_prompt=clean(terms.system_prompt),
        file_name=clean(file_name)[:200],
        rows=accepted,
        num_rows=len(rows),
        num_refused=len(rows) - len(accepted),
        created_at=Now(),
    )


def unfinished() -> list[int]:
    """Ids of the imports that have not ended, the oldest first."""
    return list(CacheImport.objects.filter(state__in=UNFINISHED).order_by("id").values_list("id", flat=True))


def store_next(import_id: int) -> int:
    """Store the next rows; how many were dealt with. 0 when none are left, nobody embeds them now, or another worker
    was faster. For processes without an event loop of their own."""
    begun = CacheImport.objects.defer("rows").filter(id=import_id, state__in=UNFINISHED).first()
    if begun is None:
        return 0
    try:
        rows = _next_rows(begun)
        return _store(begun, lending.run(judged, rows, _terms(begun)))
    except NobodyToAsk:
        _leave(begun, "the engine does not say what it serves")
    except (OSError, OperationalError) as trouble:
        _leave(begun, f"{type(trouble).__name__}: {trouble}")
    except Exception as trouble:  # whatever it is, staff must see it, and the others' imports go on
        logger.exception("import %d failed", begun.pk)
        _fail(begun, f"{type(trouble).__name__}: {trouble}")
    return 0


def _next_rows(begun: CacheImport) -> list[Row]:
    with connection.cursor() as cursor:
        cursor.execute(_NEXT, {"id": begun.pk, "batch": BATCH})
        ((listed,),) = cursor.fetchall()
    return [Row(0, question, answer) for question, answer in json.loads(listed)]


def _terms(begun: CacheImport) -> Terms:
    """Whether the answers may name people was asked when the import began."""
    return Terms(begun.rule_id, begun.tenant, begun.system_prompt, may_name_people=True)


def _store(begun: CacheImport, found: Sequence[Judged]) -> int:
    """The rows and the progress, or neither where another worker was faster."""
    entries = [one.entry for one in found if one.entry is not None]
    num_done, num_refused = begun.num_done + len(entries), begun.num_refused + len(found) - len(entries)
    is_last = num_done + num_refused >= begun.num_rows
    progress = {"num_done": num_done, "num_refused": num_refused, "trouble": ""}
    progress |= _ended(State.DONE) if is_last else {"state": State.RUNNING}
    with transaction.atomic():
        unmoved = CacheImport.objects.filter(
            id=begun.pk, num_done=begun.num_done, num_refused=begun.num_refused, state__in=UNFINISHED
        )
        if not unmoved.update(**progress):
            return 0
        for entry in entries:
            store.insert(entry)
    return len(found)


def _leave(begun: CacheImport, trouble: str) -> None:
    """For the next run, unless there were enough of them."""
    logger.warning("import %d waits: %s", begun.pk, trouble)
    old = CacheImport.objects.filter(id=begun.pk, created_at__lt=Now() - GIVEN_UP_AFTER)
    if not old.update(**_ended(State.FAILED), trouble=trouble):
        CacheImport.objects.filter(id=begun.pk).update(trouble=trouble)


def _fail(begun: CacheImport, trouble: str) -> None:
    CacheImport.objects.filter(id=begun.pk, state__in=UNFINISHED).update(
        **_ended(State.FAILED), trouble=trouble
    )


def _ended(state: State) -> dict[str, Any]:
    """The columns of an import that ended: its rows are kept no longer."""
    return {"state": state, "rows": [], "ended_at": Now()}


def _forget_old() -> None:
    kept = list(CacheImport.objects.order_by("-id").values_list("id", flat=True)[: KEPT - 1])
    CacheImport.objects.exclude(state__in=UNFINISHED).exclude(id__in=kept).delete()
