"""Stored answers: find them, correct one, act on some, evict many."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from django.db import transaction
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from ninja import Field, Query, Router, Schema

from chatsite.cache_api.schemas import ActIn, EntryChange, EntryOut, EntryPage, EvictIn, NumOut
from chatsite.cache_api.staff import allow, refused
from chatsite.db import run_in_db
from chatsite.errors import NotFound
from chatsite.json_types import RowId
from semcache.admin.acts import ACTS, edited, evict_many, keep_edited
from semcache.admin.audit import hashed, note_entries
from semcache.admin.forms import BulkEvictForm, CacheEntryForm
from semcache.models import CacheEntry

router = Router()
PAGE = 50


class Wanted(Schema):
    """Which answers are listed: all of what is given must hold."""

    q: Annotated[str, Field(max_length=200, description="Words of the question or the answer.")] = ""
    rule: Annotated[int, Field(ge=1, lt=2**63)] | None = None
    tenant: Annotated[str, Field(max_length=64)] = ""
    owner: Annotated[str, Field(max_length=64, description="A creator, such as `user:7`.")] = ""
    model_revision: Annotated[str, Field(max_length=200)] = ""
    source: Literal["", "answer", "import", "promotion"] = ""
    sharing: Literal["", "private", "tenant", "promoted", "public"] = ""
    pinned: bool | None = None
    before: Annotated[int, Field(ge=1, lt=2**63, description="`next` of the page before.")] | None = None


@router.get("", response=EntryPage)
async def list_cache_entries(request: HttpRequest, wanted: Query[Wanted]) -> dict[str, Any]:
    """A page of stored answers, the latest first."""
    return await run_in_db(_listed, request, wanted)


@router.post("/act", response=NumOut)
async def act_on_cache_entries(request: HttpRequest, body: ActIn) -> dict[str, int]:
    """Evicts, pins, renews, promotes or marks as wrong what is named; the number of answers that it was done to."""
    return {"num": await run_in_db(_acted, request, body)}


@router.post("/evict", response=NumOut)
async def evict_cache_entries(request: HttpRequest, body: EvictIn) -> dict[str, int]:
    """Evicts all answers that have something in common; how many there were."""
    return {"num": await run_in_db(_evicted, request, body)}


@router.get("/{entry_id}", response=EntryOut)
async def get_cache_entry(request: HttpRequest, entry_id: RowId) -> dict[str, Any]:
    """One stored answer."""
    return await run_in_db(_one, request, entry_id)


@router.patch("/{entry_id}", response=EntryOut)
async def change_cache_entry(request: HttpRequest, entry_id: RowId, body: EntryChange) -> dict[str, Any]:
    """Corrects an answer; with `answer_sha256` only if it is still the text that was read."""
    return await run_in_db(_changed, request, entry_id, body)


def _listed(request: HttpRequest, wanted: Wanted) -> dict[str, Any]:
    allow(request, "view_cacheentry")
    rows = list(_wanted(wanted).order_by("-pk")[: PAGE + 1])
    following = rows[PAGE - 1].pk if len(rows) > PAGE else None
    return {"items": [_shown(entry) for entry in rows[:PAGE]], "next": following}


def _wanted(wanted: Wanted) -> QuerySet[CacheEntry]:
    columns = wanted.dict(exclude={"q", "before", "pinned"}) | {"is_pinned": wanted.pinned}
    rows = _entries().filter(**{name: value for name, value in columns.items() if value not in ("", None)})
    if wanted.before is not None:
        rows = rows.filter(pk__lt=wanted.before)
    for word in wanted.q.split():
        rows = rows.filter(Q(question__icontains=word) | Q(answer__icontains=word))
    return rows


def _one(request: HttpRequest, entry_id: int) -> dict[str, Any]:
    allow(request, "view_cacheentry")
    return _shown(_row(entry_id))


def _acted(request: HttpRequest, body: ActIn) -> int:
    act = ACTS[body.act]
    allow(request, f"{act.permission}_cacheentry")
    return act(request, body.ids)


def _evicted(request: HttpRequest, body: EvictIn) -> int:
    allow(request, "delete_cacheentry")
    form = BulkEvictForm(body.dict(exclude={"dry_run"}))
    if not form.is_valid():
        raise refused(form)
    chosen = form.chosen()
    return chosen.entries().count() if body.dry_run else evict_many(request, chosen)


@transaction.atomic
def _changed(request: HttpRequest, entry_id: int, body: EntryChange) -> dict[str, Any]:
    allow(request, "change_cacheentry")
    CacheEntry.objects.select_for_update().filter(pk=entry_id).first()
    entry = _row(entry_id)
    known = hashed(entry.answer) if body.answer_sha256 is None else body.answer_sha256
    form = CacheEntryForm({"answer": body.answer, "answer_sha256": known}, instance=entry)
    if not form.is_valid():
        raise refused(form)
    if form.is_edited:
        keep_edited(form.instance)
        note_entries(request, [entry_id], edited(form))
    return _shown(_row(entry_id))


def _entries() -> QuerySet[CacheEntry]:
    return CacheEntry.objects.select_related("rule", "use").defer("embedding", "token_ids")


def _row(entry_id: int) -> CacheEntry:
    entry = _entries().filter(pk=entry_id).first()
    if entry is None:
        raise NotFound("There is no such stored answer.")
    return entry


def _shown(entry: CacheEntry) -> dict[str, Any]:
    fields = ("id", "question", "answer", "source", "sharing", "tenant", "owner", "model_revision", "is_pinned",
              "created_at", "expires_at")  # fmt: skip
    use = getattr(entry, "use", None)
    told = {name: getattr(entry, name) for name in fields}
    return told | {
        "rule": entry.rule_id,
        "answer_sha256": hashed(entry.answer),
        "hits": 0 if use is None else use.hits,
    }
