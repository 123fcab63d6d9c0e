"""The link to an export: good once, for ten minutes, and for its owner's own session. Only its hash is stored.

Knows rows; what the export holds is `chatsite.chat.export`'s.
"""

from __future__ import annotations

import hashlib
import secrets
from datetime import datetime, timedelta

from django.utils import timezone

from chatsite.chat.models import ExportLink
from chatsite.errors import NotFound

GOOD_FOR = timedelta(minutes=10)
EVERYTHING = "everything"


def issue(user_id: int) -> tuple[str, datetime]:
    """The link's secret, which nobody can read again, and when it ends. Links that ended are removed."""
    now = timezone.now()
    ExportLink.objects.filter(expires_at__lt=now).delete()
    secret = secrets.token_urlsafe(32)
    row = ExportLink.objects.create(
        sha256=_digest(secret), user_id=user_id, form=EVERYTHING, expires_at=now + GOOD_FOR
    )
    return secret, row.expires_at


def consume(user_id: int, secret: str) -> None:
    """Takes the link: of two who come at once one gets it. Raises NotFound."""
    now = timezone.now()
    link = ExportLink.objects.filter(
        sha256=_digest(secret), user=user_id, expires_at__gt=now, used_at__isnull=True
    )
    if link.update(used_at=now) != 1:
        raise NotFound("There is no such export, or it was taken already.")


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
