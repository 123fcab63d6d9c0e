"""Small "look there" notices between tabs: an answer began in a conversation that somebody watches.

Sockets of this process are told directly, other processes through the channel layer, with one subscription per
process. Notices may be lost (the layer promises nothing, and a broken one only costs them); no text travels here.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from typing import Any, Protocol
from uuid import UUID

from channels.layers import get_channel_layer
from redis.exceptions import RedisError

from chatsite.chat.generations import lease_owner

logger = logging.getLogger(__name__)

GROUP = "chat-notices"
STARTED = "chat.started"
MAX_BACKOFF_S = 15.0
POST_WITHIN_S = 2.0


class Watcher(Protocol):
    def on_started(self, conversation: UUID, generation: UUID) -> None: ...


class Noticeboard:
    """Who of this process watches what."""

    def __init__(self) -> None:
        self._watchers: defaultdict[UUID, set[Watcher]] = defaultdict(set)

    def watch(self, conversation: UUID, watcher: Watcher) -> None:
        self._watchers[conversation].add(watcher)

    def unwatch(self, conversation: UUID, watcher: Watcher) -> None:
        watchers = self._watchers[conversation]
        watchers.discard(watcher)
        if not watchers:
            del self._watchers[conversation]

    async def started(self, conversation: UUID, generation: UUID, by: Watcher | None) -> None:
        """Tells all watchers but the one who asked."""
        self._tell(conversation, generation, by)
        notice = {
            "type": STARTED, "process": lease_owner(), "conversation": str(conversation), "generation": str(generation),
        }  # fmt: skip
        try:
            async with asyncio.timeout(POST_WITHIN_S):
                await get_channel_layer().group_send(GROUP, notice)
        except (RedisError, OSError, TimeoutError) as error:
            logger.warning("other processes hear nothing of %s: %s", generation, error)

    async def listen(self) -> None:
        """Hears what other processes say, for ever; a layer that is away is tried again."""
        backoff_s = 0.5
        while True:
            try:
                layer = get_channel_layer()
                channel = await layer.new_channel()
                await layer.group_add(GROUP, channel)
                while True:
                    self._hear(await layer.receive(channel))
                    backoff_s = 0.5
            except (RedisError, OSError) as error:
                logger.warning("no notices of other processes: %s", error)
            await asyncio.sleep(backoff_s)
            backoff_s = min(2 * backoff_s, MAX_BACKOFF_S)

    def _hear(self, notice: dict[str, Any]) -> None:
        if notice["type"] == STARTED and notice["process"] != lease_owner():
            self._tell(UUID(notice["conversation"]), UUID(notice["generation"]), None)

    def _tell(self, conversation: UUID, generation: UUID, by: Watcher | None) -> None:
        for watcher in list(self._watchers.get(conversation, ())):
            if watcher is not by:
                watcher.on_started(conversation, generation)


board = Noticeboard()
