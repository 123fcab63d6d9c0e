"""The parts of a person's export: account, keys, conversations, templates, shares, usage, cached answers.

Conversations have the form that can be brought in again. Each part is read by a short synchronous function. Secrets
are in none of them. Knows rows; does not know how they are sent.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.core.serializers.json import DjangoJSONEncoder

from chatsite.accounts.callers import caller_of_user
from chatsite.accounts.ledger import spreadsheet
from chatsite.accounts.models import UsageRecord, User
from chatsite.chat.models import Conversation, PromptTemplate, ShareLink
from chatsite.chat.transfer import markdown, rows
from chatsite.chat.transfer.export import file_of
from chatsite.db import run_in_db
from chatsite.errors import NotFound
from semcache.admin.export import as_jsonl, rows_of
from semcache.models import CacheEntry

USAGE_ROWS = 10_000
USAGE_COLUMNS = (
    "created_at", "kind", "generation", "key", "business_line", "model", "origin", "state", "prompt_tokens",
    "reused_tokens", "prefilled_tokens", "generated_tokens", "peak_kv_bytes", "block_seconds", "device_seconds",
    "queue_ms", "prefill_ms", "decode_ms", "delivery_ms", "cost", "currency", "saved_tokens", "saved_ms",
    "saved_cost",
)  # fmt: skip
CACHE_ENTRIES = 1000


@dataclass(frozen=True, slots=True)
class Part:
    """One file of the zip."""

    name: str
    text: str


async def of(user_id: int) -> AsyncGenerator[Part, None]:
    """All parts in order; what is erased meanwhile is left out."""
    yield Part("account.json", await run_in_db(_account, user_id))
    yield Part("templates.json", await run_in_db(_templates, user_id))
    yield Part("shares.json", await run_in_db(_shares, user_id))
    for conversation in await run_in_db(_conversations, user_id):
        for part in await run_in_db(_conversation, user_id, conversation):
            yield part
    for number, first in enumerate(await run_in_db(_pages_of_usage, user_id), start=1):
        yield Part(f"usage-{number}.csv", await run_in_db(_usage, user_id, first))
    for number, page in enumerate(await run_in_db(_pages_of_cache, user_id), start=1):
        yield Part(f"cached-answers-{number}.jsonl", await run_in_db(_cached, page))


def _account(user_id: int) -> str:
    user = User.objects.select_related("tenant").get(pk=user_id)
    keys = user.api_keys.order_by("created_at").values(
        "id", "name", "prefix", "scopes", "created_at", "expires_at", "revoked_at", "last_used_at"
    )
    told = {
        "name": user.username, "first_name": user.first_name, "last_name": user.last_name, "email": user.email,
        "joined_at": user.date_joined, "last_sign_in_at": user.last_login, "is_guest": user.is_guest,
        "business_line": user.tenant.name, "groups": [group.name for group in user.groups.all()],
        "sign_in_providers": list(user.identities.values("issuer", "subject", "created_at", "last_used_at")),
        "api_keys": list(keys),
    }  # fmt: skip
    return _json(told)


def _templates(user_id: int) -> str:
    mine = PromptTemplate.objects.filter(owner=user_id).order_by("pk")
    return _json(list(mine.values("title", "body", "language", "is_starter", "use_count")))


def _shares(user_id: int) -> str:
    """What was shared by link. The links themselves are known to nobody but who was given them."""
    mine = ShareLink.objects.filter(owner=user_id).order_by("created_at", "pk")
    return _json(list(mine.values("id", "conversation", "title", "messages", "created_at", "revoked_at")))


def _conversations(user_id: int) -> list[UUID]:
    return list(
        Conversation.objects.filter(owner=user_id).order_by("created_at").values_list("pk", flat=True)
    )


def _conversation(user_id: int, conversation: UUID) -> list[Part]:
    try:
        talk = rows.load(user_id, conversation)
    except NotFound:
        return []
    name = f"conversations/{conversation}"
    return [Part(f"{name}.json", file_of(talk)), Part(f"{name}.md", markdown.written(talk))]


def _pages_of_usage(user_id: int) -> list[int]:
    """The first row of each file."""
    mine = UsageRecord.objects.filter(user=user_id).order_by("pk").values_list("pk", flat=True)
    return list(mine)[::USAGE_ROWS]


def _usage(user_id: int, first: int) -> str:
    mine = UsageRecord.objects.filter(user=user_id, pk__gte=first).select_related("api_key", "tenant")
    return "".join(spreadsheet.lines(USAGE_COLUMNS, map(_used, mine.order_by("pk")[:USAGE_ROWS])))


def _used(row: UsageRecord) -> list[Any]:
    own = {"key": row.api_key.prefix if row.api_key else "", "business_line": row.tenant.slug}
    return [own.get(name, getattr(row, name, "")) for name in USAGE_COLUMNS]


def _pages_of_cache(user_id: int) -> list[list[int]]:
    """The entries of each file: made from the person's questions, whomever the rule shares them with."""
    owner = caller_of_user(User.objects.get(pk=user_id)).owner
    mine = list(CacheEntry.objects.filter(owner=owner).order_by("pk").values_list("pk", flat=True))
    return [mine[start : start + CACHE_ENTRIES] for start in range(0, len(mine), CACHE_ENTRIES)]


def _cached(page: list[int]) -> str:
    return as_jsonl(rows_of(CacheEntry.objects.filter(pk__in=page)))


def _json(told: Any) -> str:
    return json.dumps(told, ensure_ascii=False, indent=2, cls=DjangoJSONEncoder)
