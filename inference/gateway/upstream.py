"""The upstream over HTTP: its models, its metrics, one streamed completion.

Knows HTTP, server-sent events and which status means what. Does not know what is asked for (`request`), or whether
to try again (`completion`). The URL may hold a password, so messages name `address.shown` only.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import Any

import httpx2

from inference.gateway.address import Address
from inference.gateway.errors import Broken, Busy, Refused, Unreachable, UpstreamError
from inference.gateway.events import read_events
from inference.gateway.wire import UNREADABLE, Chunk, ModelCard, error_in, error_text, read_chunk, read_models
from inference.settings import SettingError

CONNECT_TIMEOUT_S = 5.0
WRITE_TIMEOUT_S = 30.0
# Small questions, from the first byte to the last; an engine that is busy with tokens still answers them.
QUESTION_TIMEOUT_S = 5.0
# Of what an error says: enough to find its message.
MAX_ERROR_BYTES = 65_536
# Beside the answers: the list of models and the metrics.
SPARE_CONNECTIONS = 4
END_OF_STREAM = b"[DONE]"

logging.getLogger("httpx2").setLevel(logging.WARNING)  # it writes a line, with the URL, for every request


class Upstream:
    """One client for all answers. Silence of a stream has no limit here: the request's deadline ends it.

    Raises SettingError for a proxy of the environment that cannot be used.
    """

    def __init__(self, address: Address, key: str, max_streams: int) -> None:
        self.address = address
        try:
            self._http = _client(key, max_streams + SPARE_CONNECTIONS)
        except (ImportError, ValueError, httpx2.InvalidURL):  # its words may hold the proxy's password
            raise SettingError(
                "a proxy that HTTP_PROXY, HTTPS_PROXY or ALL_PROXY names cannot be used: it must be an http URL"
            ) from None

    async def close(self) -> None:
        await self._http.aclose()

    async def models(self) -> list[ModelCard]:
        """Raises UpstreamError."""
        body = await self._get(f"{self.address.api}/models")
        try:
            return read_models(body)
        except UNREADABLE as error:
            raise Broken(f"the list of models of {self.address.shown} cannot be read: {error}") from None

    async def metrics(self) -> str:
        """Prometheus text. Raises UpstreamError."""
        return (await self._get(f"{self.address.root}/metrics")).decode("utf-8", "replace")

    async def complete(self, body: Mapping[str, Any], headers: Mapping[str, str]) -> AsyncIterator[Chunk]:
        """The chunks of one completion as they arrive; closing the iterator closes the connection at once.

        Raises UpstreamError. A stream that breaks off ends without a finish reason or raises Broken.
        """
        url = f"{self.address.api}/completions"
        has_answered = has_events = False
        try:
            async with self._http.stream("POST", url, json=body, headers=dict(headers)) as response:
                has_answered = True
                if response.status_code != 200:
                    raise self._refusal(response, await _beginning(response))
                async for data in read_events(response.aiter_bytes()):
                    has_events = True
                    if data == END_OF_STREAM:
                        return
                    yield self._chunk(data)
                if not has_events:
                    kind = response.headers.get("Content-Type", "something")
                    raise Broken(f"the upstream answered with {kind} instead of a stream of events")
        except httpx2.RequestError as error:
            raise self._lost(error, has_answered) from None

    async def _get(self, url: str) -> bytes:
        try:
            async with asyncio.timeout(QUESTION_TIMEOUT_S):
                response = await self._http.get(url)
        except TimeoutError:
            raise Unreachable(
                f"the upstream {self.address.shown} did not answer within {QUESTION_TIMEOUT_S:.0f} s"
            ) from None
        except httpx2.RequestError as error:
            raise self._lost(error, has_answered=False) from None
        if response.status_code != 200:
            raise self._refusal(response, response.content)
        return response.content

    def _chunk(self, data: bytes) -> Chunk:
        try:
            chunk = read_chunk(data)
        except UNREADABLE as error:
            raise Broken(f"a chunk of the upstream cannot be read: {error}") from None
        if message := error_in(chunk):
            raise Broken(f"the upstream failed: {message}")
        return chunk

    def _lost(self, error: httpx2.RequestError, has_answered: bool) -> UpstreamError:
        reason = str(error) or type(error).__name__
        if not has_answered:
            return Unreachable(f"the upstream {self.address.shown} cannot be reached: {reason}")
        return Broken(f"the connection to the upstream was lost in mid-answer: {reason}")

    def _refusal(self, response: httpx2.Response, body: bytes) -> UpstreamError:
        status, text = response.status_code, error_text(body) or "it gives no reason"
        if status in (429, 503):
            return Busy(f"the upstream is full: {text}", _seconds(response.headers.get("Retry-After", "")))
        if status in (400, 413, 422):
            return Refused(f"the upstream refused the request: {text}")
        if status in (401, 403):
            return Broken(f"the upstream {self.address.shown} does not take ENGINE_UPSTREAM_KEY: {text}")
        if response.has_redirect_location:
            text = f"it moves to {_shown(response.headers['Location'])}, which is not followed"
        return Broken(f"{_shown(str(response.url))} answered with status {status}: {text}")


def _client(key: str, num_connections: int) -> httpx2.AsyncClient:
    """Heeds the environment's proxies and certificates, as curl does."""
    return httpx2.AsyncClient(
        headers={"Authorization": f"Bearer {key}"} if key else {},
        timeout=httpx2.Timeout(None, connect=CONNECT_TIMEOUT_S, write=WRITE_TIMEOUT_S),
        limits=httpx2.Limits(
            max_connections=num_connections,
            max_keepalive_connections=num_connections,
            keepalive_expiry=30,
        ),
    )


async def _beginning(response: httpx2.Response) -> bytes:
    """Of the body of an error: it need not end, and may be lost like any other."""
    body = b""
    with suppress(TimeoutError, httpx2.RequestError):
        async with asyncio.timeout(QUESTION_TIMEOUT_S):
            async for part in response.aiter_bytes():
                body += part
                if len(body) >= MAX_ERROR_BYTES:
                    break
    return body


def _shown(url: str) -> str:
    """A URL without what may be secret in it."""
    try:
        return str(httpx2.URL(url).copy_with(username=None, password=None, query=None, fragment=None))
    except httpx2.InvalidURL:
        return "somewhere else"


def _seconds(value: str) -> float | None:
    """Of a Retry-After in seconds; its other form, a date, is left to our own waiting."""
    return float(value) if value.strip().isdecimal() else None
