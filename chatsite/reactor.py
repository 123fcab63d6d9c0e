"""Twisted's reactor on uvloop, with one difference: it writes first, and watches only what the kernel did not take.

Nearly every message of a stream fits into the socket's buffer, and to have a socket watched until it is writable costs
more than the writing. The loop is uvloop's, because a fifth of what a token costs is timers and callbacks. Import this
before anything of Twisted or daphne that brings a reactor. Knows no protocol.
"""

from __future__ import annotations

import asyncio
from typing import Any

import uvloop
from twisted.internet.asyncioreactor import AsyncioSelectorReactor
from twisted.internet.main import installReactor


class EagerReactor(AsyncioSelectorReactor):
    """All that was written in one turn of the loop is sent in the next one; order within a connection is kept."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._unsent: dict[Any, None] = {}  # an ordered set
        self._is_sending_soon = False
        self.loop = loop
        super().__init__(loop)

    def addWriter(self, writer: Any) -> None:
        if writer in self._writers:
            return
        self._unsent[writer] = None
        self._send_soon()

    def removeWriter(self, writer: Any) -> None:
        if writer in self._unsent:
            del self._unsent[writer]
        else:
            super().removeWriter(writer)

    def removeAll(self) -> list[Any]:
        unsent, self._unsent = list(self._unsent), {}
        return [*super().removeAll(), *unsent]

    def getWriters(self) -> list[Any]:
        return [*super().getWriters(), *self._unsent]

    def _send_soon(self) -> None:
        if not self._is_sending_soon:
            self._is_sending_soon = True
            self.loop.call_soon(self._send)

    def _send(self) -> None:
        self._is_sending_soon = False
        for writer in list(self._unsent):
            if writer not in self._unsent:
                continue  # another one's sending has ended it
            self._readOrWrite(writer, False)  # takes itself off when everything has left
            if writer in self._unsent:
                del self._unsent[writer]
                super().addWriter(writer)


reactor = EagerReactor(uvloop.new_event_loop())
installReactor(reactor)
