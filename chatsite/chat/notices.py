"""Small "look there" notices between tabs: an answer began in a conversation that somebody watches, and what happened
to the conversations of a person who has a tab open.

Sockets of this process are told directly, other processes through the channel layer, with one subscription per
process. Notices may be lost (the layer promises nothing, and a broken one only costs them); no text travels here: who
hears of a change reads what it may see.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any, Protocol
from uuid import UUID

import msgspec
from channels.layers import get_channel_layer
from redis.exceptions import RedisError

from chatsite.chat.generations import lease_owner

logger = logging.getLogger(__name__)

GROUP = "chat-notices"
NOTICE = "chat.notice"
MAX_BACKOFF_S = 15.0
POST_WITHIN_S = 2.0


class Kind(StrEnum):
    """What happened to conversations."""

    ASKED = "asked"
    ANSWERED = "answered"
    CHANGED = "changed"  # renamed, pinned, archived, tagged
    REWORDED = "reworded"  # a question has another version, which is shown
    ERASED = "erased"
    MANY = "many"  # so many that none is named


class Started(msgspec.Struct, frozen=True, tag="started"):
    """An answer began in a conversation."""

    conversation: UUID
    generation: UUID


class Changed(msgspec.Struct, frozen=True, tag="changed"):
    """Something happened to conversations of one person."""

    user: int
    kind: Kind
    conversations: Sequence[UUID] = ()


Notice = Started | Changed


class Listener(Protocol):
    """An open tab."""

    def on_started(self, started: Started) -> None: ...

    def on_changed(self, changed: Changed) -> None: ...


class Noticeboard:
    """Which tabs of this process watch which conversation, and which are whose."""

    def __init__(self) -> None:
        self._watchers: defaultdict[UUID, set[Listener]] = defaultdict(set)
        self._tabs: defaultdict[int, set[Listener]] = defaultdict(set)

    def join(self, user: int, tab: Listener) -> None:
        self._tabs[user].add(tab)

    def leave(self, user: int, tab: Listener) -> None:
        _drop(self._tabs, user, tab)

    def watch(self, conversation: UUID, tab: Listener) -> None:
        self._watchers[conversation].add(tab)

    def unwatch(self, conversation: UUID, tab: Listener) -> None:
        _drop(self._watchers, conversation, tab)

    async def asked(
        self, user: int, conversation: UUID, generation: UUID, by: Listener | None = None
    ) -> None:
        """Tells whoever watches the conversation, and its owner's tabs; not the one who asked."""
        started, changed = Started(conversation, generation), Changed(user, Kind.ASKED, (conversation,))
        await self._post([started, changed], by)

    async def changed(self, user: int, kind: Kind, conversations: Sequence[UUID] = ()) -> None:
        """Tells all tabs of the person."""
        await self._post([Changed(user, kind, tuple(conversations))], None)

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

    async def _post(self, notices: list[Notice], by: Listener | None) -> None:
        for notice in notices:
            self._tell(notice, by)
        message = {"type": NOTICE, "process": lease_owner(), "notices": msgspec.to_builtins(notices)}
        try:
            async with asyncio.timeout(POST_WITHIN_S):
                await get_channel_layer().group_send(GROUP, message)
        except (RedisError, OSError, TimeoutError) as error:
            logger.warning("other processes hear nothing of a change: %s", error)

    def _hear(self, message: dict[str, Any]) -> None:
        if message["type"] != NOTICE or message["process"] == lease_owner():
            return
        try:
            notices = msgspec.convert(message["notices"], list[Notice])
        except msgspec.ValidationError as error:  # a process of another version
            logger.warning("a notice cannot be read: %s", error)
            return
        for notice in notices:
            self._tell(notice, None)

    def _tell(self, notice: Notice, by: Listener | None) -> None:
        for tab in self._ears_of(notice):
            if tab is by:
                continue
            if isinstance(notice, Started):
                tab.on_started(notice)
            else:
                tab.on_changed(notice)

    def _ears_of(self, notice: Notice) -> Iterable[Listener]:
        if isinstance(notice, Started):
            return list(self._watchers.get(notice.conversation, ()))
        return list(self._tabs.get(notice.user, ()))


def _drop(tabs: defaultdict[Any, set[Listener]], name: Any, tab: Listener) -> None:
    mine = tabs[name]
    mine.discard(tab)
    if not mine:
        del tabs[name]


board = Noticeboard()
