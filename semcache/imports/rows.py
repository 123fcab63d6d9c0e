"""Which rows of a file may be stored as answers for everybody, and why the others may not.

Each row goes the way of a question up to its place (`service.placed`): rule, scope, vector. Knows no file and no page,
and stores nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum

from django.db.models.functions import Now

from semcache import process, service
from semcache.decision import Answer, Decision, Question, Reason
from semcache.imports.file import Row
from semcache.lending import Asked, lent
from semcache.models import CacheEntry
from semcache.rules.policy import Mode
from semcache.service import MAX_ANSWER_CHARS, MAX_QUESTION_CHARS
from semcache.storage.store import NewEntry
from semcache.storage.threads import in_database
from semcache.text import personal
from semcache.text.normalize import canonical, clean
from semcache.text.personal import Personal

# What the engine's embedding lane takes at once.
EMBED_BATCH = 32
EMBED_WITHIN_S = 60.0
# An answer may say "we" and "you": that names nobody.
ABOUT_SOMEBODY = frozenset(Personal) - {Personal.ASKER}


class Refusal(StrEnum):
    """Why a row is not stored; stable codes."""

    EMPTY = "empty"
    TOO_LONG = "too-long"
    TWICE = "twice"
    STORED = "stored"
    OTHER_RULE = "other-rule"
    OF_THIS_MOMENT = "of-this-moment"
    NOT_SHARED = "not-shared"
    PERSONAL = "personal"


class NobodyToAsk(Exception):
    """Nobody says what is served now, so that nobody knows for which questions the answers would be."""


@dataclass(frozen=True, slots=True)
class Terms:
    """Under which rule the rows are stored, for whom, and for which chats.

    `may_name_people`: what looks like personal data in the answers is meant for everybody, as a firm's own address is.
    """

    rule_id: int
    tenant: str = ""
    system_prompt: str = ""
    may_name_people: bool = False


@dataclass(frozen=True, slots=True)
class Judged:
    """A row with its place, or why it has none; `about` says what exactly, such as the rule that decides instead."""

    row: Row
    why: Refusal | None = None
    about: str = ""
    entry: NewEntry | None = None


async def judged(rows: Sequence[Row], terms: Terms, with_vectors: bool = True) -> list[Judged]:
    """Each row in order. Raises NobodyToAsk, and whatever the embedder raises.

    Without vectors the entries are no more than a promise: enough to say what would be stored.
    """
    asked = await lent("", terms.tenant, "")
    if asked is None:
        raise NobodyToAsk
    by_example = any(rule.examples for rule in await in_database(process.rules.fresh))
    # Without an embedder's name nothing is embedded, which a rule with examples needs.
    embedder = asked.question.embedder if with_vectors or by_example else ""
    question = replace(asked.question, owner="", system_prompt=terms.system_prompt, embedder=embedder)
    lane = await _embedded(rows, asked) if embedder else asked
    placed = [await _placed(row, terms, replace(question, text=row.question), lane) for row in rows]
    return await _without_repeats(placed)


async def _embedded(rows: Iterable[Row], asked: Asked) -> Asked:
    """The lender with the vectors of all rows made already, many at once."""
    texts = list(dict.fromkeys(text for row in rows if (text := canonical(row.question))))
    vectors: dict[str, Sequence[float]] = {}
    for start in range(0, len(texts), EMBED_BATCH):
        batch = texts[start : start + EMBED_BATCH]
        async with asyncio.timeout(EMBED_WITHIN_S):
            vectors |= dict(zip(batch, await asked.embed(batch), strict=True))

    async def embed(wanted: list[str]) -> Sequence[Sequence[float]]:
        known = [vectors[text] for text in wanted if text in vectors]
        return known if len(known) == len(wanted) else await asked.embed(wanted)

    return replace(asked, embed=embed)


async def _placed(row: Row, terms: Terms, question: Question, lane: Asked) -> Judged:
    answer = clean(row.answer)
    if not canonical(row.question) or not answer.strip():
        return Judged(row, Refusal.EMPTY)
    if len(question.text) > MAX_QUESTION_CHARS or len(answer) > MAX_ANSWER_CHARS:
        return Judged(row, Refusal.TOO_LONG)
    decision = await service.placed(question, lane.embed)
    refusal = _refusal(decision, terms)
    if refusal is not None:
        return Judged(row, *refusal)
    found = sorted(personal.kinds_in(answer) & ABOUT_SOMEBODY)
    if found and not terms.may_name_people:
        return Judged(row, Refusal.PERSONAL, ", ".join(found))
    shared = _shared(decision)
    if shared is None:
        return Judged(row, Refusal.NOT_SHARED, str(decision.why_private or ""))
    entry = service.new_entry(shared, question, Answer(answer, is_complete=True))
    return Judged(row, entry=replace(entry, source=CacheEntry.Source.IMPORT))


def _refusal(decision: Decision, terms: Terms) -> tuple[Refusal, str] | None:
    if decision.rule is None or decision.rule.id != terms.rule_id:
        return Refusal.OTHER_RULE, decision.rule.name if decision.rule else ""
    if decision.rule.mode == Mode.OFF:
        return Refusal.OTHER_RULE, decision.rule.name
    if decision.reason is Reason.OF_THIS_MOMENT:
        return Refusal.OF_THIS_MOMENT, ""
    return None


def _shared(decision: Decision) -> Decision | None:
    """Where everybody finds the answer whom the rule shares with; None for a question that is its asker's own."""
    if decision.public_scope:  # what promotion would bring there
        return replace(decision, scope=decision.public_scope, sharing="public")
    return decision if decision.sharing in ("tenant", "public") else None


async def _without_repeats(found: Sequence[Judged]) -> list[Judged]:
    """Refuses what comes twice, and what is stored already."""
    taken = await in_database(_stored, [one.entry for one in found if one.entry is not None])
    first: dict[tuple[str, str], Judged] = {}
    for one in found:
        if one.entry is not None:
            first.setdefault(_place(one.entry), one)

    def repeats(one: Judged, place: tuple[str, str]) -> Refusal | None:
        if first[place] is not one:
            return Refusal.TWICE
        return Refusal.STORED if place in taken else None

    return [
        Judged(one.row, why) if one.entry and (why := repeats(one, _place(one.entry))) else one
        for one in found
    ]


def _stored(entries: Sequence[NewEntry]) -> set[tuple[str, str]]:
    """Those of the places that hold an answer which is still served."""
    if not entries:
        return set()
    live = CacheEntry.objects.filter(
        scope__in={entry.scope for entry in entries},
        prompt_sha256__in=[entry.prompt_sha256 for entry in entries],
        expires_at__gt=Now(),
        created_at__gt=Now() - timedelta(seconds=entries[0].ttl_s),
    )
    return set(live.values_list("scope", "prompt_sha256"))


def _place(entry: NewEntry) -> tuple[str, str]:
    return entry.scope, entry.prompt_sha256
