"""Which pages may open a WebSocket: those of the configured origins, compared whole (scheme, host and port).

A session cookie travels with a socket that any page opens, so the Origin is what keeps strangers out. A browser always
sends one; without it a connection is refused too, for the socket has no other way to sign in than the cookie.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Any
from urllib.parse import urlsplit

logger = logging.getLogger(__name__)

DEFAULT_PORTS = {"http": 80, "https": 443}
App = Callable[
    [dict[str, Any], Callable[[], Awaitable[Any]], Callable[[Any], Awaitable[None]]], Awaitable[None]
]


class OriginGate:
    """Passes connections from `origins` on to `app`; others get 403 at the handshake and one log line."""

    def __init__(self, app: App, origins: Iterable[str]) -> None:
        self._app = app
        self._origins = {normal for origin in origins if (normal := normalized(origin)) is not None}

    async def __call__(
        self,
        scope: dict[str, Any],
        receive: Callable[[], Awaitable[Any]],
        send: Callable[[Any], Awaitable[None]],
    ) -> None:
        given = [value.decode("latin-1") for name, value in scope["headers"] if name == b"origin"]
        if len(given) == 1 and normalized(given[0]) in self._origins:
            await self._app(scope, receive, send)
            return
        logger.warning(
            "WebSocket refused: Origin %s is not in CHAT_ORIGINS",
            ascii(given[0][:200]) if given else "is missing and",
        )
        await receive()
        await send({"type": "websocket.close", "code": 4403})


def normalized(origin: str) -> tuple[str, str, int] | None:
    """(scheme, host, port) of a full origin; None for whatever is not exactly that, `null` included."""
    try:
        parts = urlsplit(origin)
        port = parts.port or DEFAULT_PORTS.get(parts.scheme)
    except ValueError:
        return None
    has_more = parts.path or parts.query or parts.fragment or "@" in parts.netloc
    if parts.scheme not in DEFAULT_PORTS or not parts.hostname or port is None or has_more:
        return None
    return parts.scheme, parts.hostname, port
