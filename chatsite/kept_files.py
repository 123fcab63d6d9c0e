"""The pages' own files from memory: what the site has once answered as valid for ever is answered again without it.

A page names more than a hundred modules, and the way of a request through Django takes longer than all the rest of it.
An answer is kept as it was made, with every header, but for the request's id. Whether one is valid for ever is said by
the answer itself (`static_files`), so nothing is kept of another version or while debugging. Knows no file.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from chatsite.middleware import new_request_id
from chatsite.static_files import FOR_EVER

Scope = dict[str, Any]
Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[Any]]
Key = tuple[str, str, bytes]

REQUEST_ID = b"x-request-id"
# Whoever sends one of these may be answered with a part of a file or with none.
ASKS_FOR_LESS = frozenset({b"range", b"if-none-match", b"if-modified-since"})
# Another value goes the long way: keys are made of what clients send, and must not become many.
PROTOCOLS = (b"", b"http", b"https")


@dataclass(frozen=True, slots=True)
class Kept:
    headers: tuple[tuple[bytes, bytes], ...]  # but for the request's id
    body: bytes


class KeptFiles:
    """An ASGI application around that of the site."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._kept: dict[Key, Kept] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        key = key_of(scope)
        if key is None:
            await self._application(scope, receive, send)
        elif key in self._kept:
            await _answer(self._kept[key], send)
        else:
            answer = _Answer(send)
            await self._application(scope, receive, answer.send)
            if (kept := answer.to_keep()) is not None:
                self._kept[key] = kept


def key_of(scope: Scope) -> Key | None:
    """What an answer depends on: the address and whether the request came by TLS. None for other requests."""
    path: str = scope["path"]
    if scope["method"] != "GET" or scope.get("root_path") or not path.startswith(settings.STATIC_URL):
        return None
    forwarded = b""
    for name, value in scope["headers"]:
        if name in ASKS_FOR_LESS:
            return None
        if name == b"x-forwarded-proto":
            if forwarded or value not in PROTOCOLS:
                return None
            forwarded = value
    return path, scope["scheme"], forwarded


class _Answer:
    """Passes an answer on and remembers it."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._start: Message = {}
        self._body = b""
        self._is_whole = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._start = message
        else:
            self._body += message.get("body", b"")
            self._is_whole = not message.get("more_body", False)
        await self._send(message)

    def to_keep(self) -> Kept | None:
        headers = [(name.lower(), value) for name, value in self._start.get("headers", ())]
        names = {name for name, _ in headers}
        is_for_ever = (b"cache-control", FOR_EVER.encode()) in headers
        if self._start.get("status") != 200 or not self._is_whole or not is_for_ever or b"vary" in names:
            return None
        return Kept(tuple(header for header in headers if header[0] != REQUEST_ID), self._body)


async def _answer(kept: Kept, send: Send) -> None:
    headers = [*kept.headers, (REQUEST_ID, new_request_id().encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": kept.body})
