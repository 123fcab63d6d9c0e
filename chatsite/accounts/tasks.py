"""Work of the celery worker for accounts."""

from __future__ import annotations

from celery import shared_task

from chatsite.accounts.guests import remove_expired


@shared_task(name="accounts.remove_expired_guests")
def remove_expired_guests() -> int:
    """The number of guests that were removed."""
    return remove_expired()
