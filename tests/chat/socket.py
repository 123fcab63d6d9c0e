"""A page's side of the socket: sends frames, collects what comes, and joins text as the page would."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from uuid import uuid4

from channels.testing import WebsocketCommunicator

from chatsite.asgi import application
from tests.patience import PATIENCE_S

Frame = dict[str, Any]


class Socket:
    """One tab. `texts` joins snapshots and deltas by generation; every delta must fit exactly."""

    def __init__(self, cookie: str, origin: str = "http://localhost:8000") -> None:
        headers = [(b"origin", origin.encode()), (b"cookie", cookie.encode())]
        self.channel = WebsocketCommunicator(application, "/ws/chat", headers=headers)
        self.texts: dict[str, str] = {}
        self.seen: list[Frame] = []

    async def open(self) -> None:
        connected, _ = await self.channel.connect(timeout=PATIENCE_S)
        assert connected

    async def close(self) -> None:
        await self.channel.disconnect(timeout=PATIENCE_S)

    async def say(self, kind: str, **fields: Any) -> None:
        await self.say_raw(json.dumps({"type": kind, **fields}, default=str))

    async def say_raw(self, text: str | None = None, raw: bytes | None = None) -> None:
        await self.channel.send_to(text_data=text, bytes_data=raw)

    async def hear(self) -> Frame:
        frame = json.loads(await self.channel.receive_from(timeout=PATIENCE_S))
        self.seen.append(frame)
        self._join(frame)
        return frame

    async def until(self, kind: str, /, **fields: Any) -> Frame:
        """The next frame of this kind with these fields; what comes before is joined and kept in `seen`."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                frame = await self.hear()
                if frame["type"] == kind and all(
                    frame.get(name) == str(value) for name, value in fields.items()
                ):
                    return frame

    async def closed(self) -> int:
        """The close code; frames before it are dropped."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                message = await self.channel.receive_output(timeout=PATIENCE_S)
                if message["type"] == "websocket.close":
                    return int(message["code"])

    async def send(self, text: str, **fields: Any) -> Frame:
        """Sends a message and returns its acceptance."""
        name = fields.pop("client_message_id", None) or uuid4()
        await self.say("send", client_message_id=name, text=text, **fields)
        return await self.until("accepted", client_message_id=name)

    async def ask(self, text: str, **fields: Any) -> tuple[Frame, Frame]:
        """Sends a message and waits for the end of its answer."""
        accepted = await self.send(text, **fields)
        return accepted, await self.until("done", generation=accepted["generation"])

    def text_of(self, frame: Frame) -> str:
        return self.texts.get(frame["generation"], "")

    def _join(self, frame: Frame) -> None:
        if frame["type"] == "snapshot":
            self.texts[frame["generation"]] = frame["text"]
        elif frame["type"] == "delta":
            known = self.texts.get(frame["generation"], "")
            assert frame["offset"] == utf16_length(known), "a delta does not fit"
            self.texts[frame["generation"]] = known + frame["text"]
        elif frame["type"] == "done":
            assert frame["length"] == utf16_length(self.text_of(frame)), "the stored text has another length"


def utf16_length(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2
