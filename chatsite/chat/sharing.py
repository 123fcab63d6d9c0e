"""Links to snapshots of conversations: made, listed, looked at, taken back.

A snapshot holds the branch that is shown, as far as it is finished, and nothing else: not who wrote it, not the system
prompt, not what comes later. Only a hash of a link's secret is stored. Synchronous: callers go through `run_in_db`.
Knows rows; knows no HTTP.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator, Sequence
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from chatsite.chat import branches
from chatsite.chat.library import owned
from chatsite.chat.models import LIVE_STATES, Message, Role, ShareLink
from chatsite.chat.store import locked
from chatsite.errors import NotFound, NotShareable, SharingOff

# The links of one conversation that work at the same time, and the letters of one snapshot: a page that is sent whole.
MOST_LINKS = 20
MOST_CHARS = 1_000_000
SECRET_BYTES = 32


@transaction.atomic
def share(user_id: int, conversation: UUID) -> tuple[ShareLink, str]:
    """A new link and its secret, which nobody can read again. Raises SharingOff, NotFound and NotShareable."""
    if not settings.CONFIG.sharing:
        raise SharingOff("Sharing by link is switched off on this site.")
    row = locked(user_id, conversation)
    if row.is_temporary:
        raise NotShareable("A temporary chat is not kept, and cannot be shared.")
    if row.shares.filter(revoked_at=None).count() >= MOST_LINKS:
        raise NotShareable(f"This chat has {MOST_LINKS} links already; take one of them back first.")
    messages = [{"role": message.role, "text": message.text} for message in _finished(branches.active(row))]
    if not messages:
        raise NotShareable("There is nothing to share yet.")
    if sum(len(message["text"]) for message in messages) > MOST_CHARS:
        raise NotShareable("This chat is too long to be shared as one page.")
    secret = secrets.token_urlsafe(SECRET_BYTES)
    link = ShareLink.objects.create(
        sha256=_digest(secret),
        owner_id=user_id,
        conversation=row,
        title=row.title,
        messages=messages,
        num_messages=len(messages),
    )
    return link, secret


def links_of(user_id: int, conversation: UUID) -> list[ShareLink]:
    """All links of the user's conversation, the newest first, without what they show. Raises NotFound."""
    row = owned(user_id, conversation)
    return list(row.shares.defer("messages").order_by("-created_at", "pk"))


@transaction.atomic
def revoke(user_id: int, link: UUID) -> None:
    """Takes a link back, with what it showed; harmless to repeat. Raises NotFound."""
    mine = ShareLink.objects.filter(pk=link, owner=user_id)
    if not mine.exists():
        raise NotFound("There is no such link.")
    take_back(mine)


@transaction.atomic
def take_back(links: QuerySet[ShareLink]) -> list[ShareLink]:
    """Those of `links` that worked until now. Whose they are is the caller's to check."""
    working = list(links.filter(revoked_at=None).select_for_update(of=("self",)).defer("messages"))
    taken = ShareLink.objects.filter(pk__in=[link.pk for link in working])
    taken.update(revoked_at=timezone.now(), title="", messages=[])
    return working


def found_by(address: str) -> QuerySet[ShareLink]:
    """The link of this address, or of this secret alone; none where there is none."""
    secret = address.strip().rstrip("/").rpartition("/")[2]
    return ShareLink.objects.filter(sha256=_digest(secret))


def seen_by(secret: str) -> ShareLink:
    """What whoever has this secret sees. Raises NotFound, also while sharing is switched off."""
    link = ShareLink.objects.filter(sha256=_digest(secret), revoked_at=None, owner__is_active=True).first()
    if link is None or not settings.CONFIG.sharing:
        raise NotFound("There is no such snapshot.")
    return link


def _finished(branch: Sequence[Message]) -> Iterator[Message]:
    """Up to the first answer that is still being made, whose question waits with it; an empty answer says nothing."""
    for number, message in enumerate(branch):
        following = branch[number + 1] if number + 1 < len(branch) else None
        if any(at is not None and at.state in LIVE_STATES for at in (message, following)):
            return
        if message.text or message.role == Role.USER:
            yield message


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()
