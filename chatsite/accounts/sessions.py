"""Sessions in the database that end: after twelve idle hours, and fourteen days after signing in whatever happens.

A guest, who has no password to come back with, keeps the session as long as the account. Settings name this module as
SESSION_ENGINE; the site loads and saves sessions by the synchronous methods only.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from django.contrib.sessions.backends import db
from django.utils import timezone

IDLE = timedelta(hours=12)
LONGEST = timedelta(days=14)
# A write per request would make these the busiest rows of the database.
RENEWED_EVERY = timedelta(minutes=10)
BEGUN = "_begun"


class SessionStore(db.SessionStore):
    """`renews` is False for looks that are no sign of life, such as a heartbeat."""

    def __init__(self, session_key: str | None = None, *, renews: bool = True) -> None:
        super().__init__(session_key)
        self._renews = renews

    def get_expiry_date(self, **kwargs: Any) -> datetime:
        if self.get("_session_expiry") is not None:
            return super().get_expiry_date(**kwargs)
        return _end(self.get(BEGUN))

    def create_model_instance(self, data: dict[str, Any]) -> Any:
        data.setdefault(BEGUN, timezone.now().timestamp())
        return super().create_model_instance(data)

    def cycle_key(self) -> None:
        """Signing in and giving a new password begin a session anew."""
        super().cycle_key()
        self.pop(BEGUN, None)

    def _get_session_from_db(self) -> Any:
        row = super()._get_session_from_db()  # type: ignore[misc]
        if row is not None and self._renews and row.expire_date < timezone.now() + IDLE - RENEWED_EVERY:
            self._renew(row)
        return row

    def _renew(self, row: Any) -> None:
        kept = self.decode(row.session_data)
        if "_session_expiry" not in kept and BEGUN in kept:
            self.model.objects.filter(pk=row.pk).update(expire_date=_end(kept[BEGUN]))


def _end(begun: float | None) -> datetime:
    """Of a session that is used now."""
    now = timezone.now()
    since = now if begun is None else datetime.fromtimestamp(begun, UTC)
    return min(now + IDLE, since + LONGEST)
