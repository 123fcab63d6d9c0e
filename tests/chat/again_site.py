"""What tests of answers made again do: let a stored answer grow old, and ask."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from chatsite.chat import again_asked
from chatsite.chat.turn import Turn
from semcache.models import CacheEntry
from tests.chat.test_cache_flight import Heard, read


def age(entry: CacheEntry) -> None:
    made = timezone.now() - timedelta(minutes=2)
    CacheEntry.objects.update(answer="Only one.", created_at=made, expires_at=made + timedelta(minutes=1))
    entry.refresh_from_db()


async def heard(turn: Turn) -> Heard:
    """What the asker is told; whatever follows from it has been sent, too."""
    heard = await read(turn, Heard())
    await again_asked.all_sent()
    return heard
