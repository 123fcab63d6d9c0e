"""The front's end of a gateway core's pipe, without a front: commands in, what the core says on record."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from inference.config import EngineConfig
from inference.core.messages import (
    FRAME_HEADER,
    Admit,
    Command,
    CoreReady,
    FinishedOut,
    Inbox,
    LoadProgress,
    SamplingSpec,
    StepPack,
    TokenOut,
    pack,
    unpack_from_core,
)
from inference.gateway.start import serve
from inference.testing.gateway import scripted_local
from inference.testing.script import script_text
from inference.testing.tokenizer import CONTROL_TOKENS, END_OF_TURN, START_OF_TURN, ByteTokenizer
from inference.testing.upstream import Behaviour, FakeUpstream, Received
from tests.patience import PATIENCE_S


def prompt_of(text: str) -> list[int]:
    return [START_OF_TURN, *b"user\n", *text.encode(), END_OF_TURN, START_OF_TURN, *b"assistant\n"]


def admit_of(sequence_id: str, text: str = "Hello", **fields: object) -> Admit:
    """`text` is the user's message; a script says what the upstream does."""
    values: dict[str, object] = {
        "sampling": SamplingSpec(),
        "max_tokens": 100,
        "stop_ids": [END_OF_TURN],
        "salt": b"salt",
        "conversation": b"conversation",
    }
    return Admit(sequence_id, prompt_of(text), **(values | fields))  # type: ignore[arg-type]


def scripted(sequence_id: str, fields: dict[str, object] | None = None, **script: object) -> Admit:
    return admit_of(sequence_id, script_text(**script), **(fields or {}))


class Front:
    """Everything that the core has said; `until` waits for more."""

    def __init__(self, connection: socket.socket) -> None:
        self.ready: CoreReady | None = None
        self.loading: list[str] = []
        self.packs: list[StepPack] = []
        self._connection = connection
        self._news = asyncio.Condition()
        self._writer: asyncio.StreamWriter | None = None

    async def listen(self) -> None:
        reader, self._writer = await asyncio.open_unix_connection(sock=self._connection)
        while True:
            (size,) = FRAME_HEADER.unpack(await reader.readexactly(FRAME_HEADER.size))
            message = unpack_from_core(await reader.readexactly(size))
            match message:
                case CoreReady():
                    self.ready = message
                case LoadProgress():
                    self.loading.append(message.text)
                case StepPack():
                    self.packs.append(message)
            async with self._news:
                self._news.notify_all()

    async def send(self, *commands: Command) -> None:
        await self.until(lambda: self._writer is not None)
        assert self._writer is not None
        self._writer.write(pack(Inbox(list(commands))))

    async def until(self, holds: Callable[[], object]) -> None:
        async with asyncio.timeout(PATIENCE_S), self._news:
            await self._news.wait_for(lambda: bool(holds()))

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()

    # What was said about one sequence

    def tokens(self, sequence_id: str) -> list[TokenOut]:
        return [out for pack in self.packs for out in pack.tokens if out.id == sequence_id]

    def ids(self, sequence_id: str) -> list[int]:
        return [out.token for out in self.tokens(sequence_id)]

    def text(self, sequence_id: str) -> str:
        """Without the names of control tokens."""
        visible = [token for token in self.ids(sequence_id) if token not in CONTROL_TOKENS.values()]
        return ByteTokenizer().decode(visible)

    def ends(self, sequence_id: str) -> list[FinishedOut]:
        return [out for pack in self.packs for out in pack.finished if out.id == sequence_id]

    async def end(self, sequence_id: str) -> FinishedOut:
        await self.until(lambda: self.ends(sequence_id))
        (end,) = self.ends(sequence_id)
        return end

    async def answer(self, admit: Admit) -> FinishedOut:
        await self.send(admit)
        return await self.end(admit.id)


@asynccontextmanager
async def gateway(url: str, **settings: object) -> AsyncIterator[Front]:
    """A gateway core on this loop in front of `url`; ready or not."""
    ours, theirs = socket.socketpair()
    config = EngineConfig(**({"upstream": url, "max_batch": 2} | settings))  # type: ignore[arg-type]
    core = asyncio.create_task(serve(config, theirs, scripted_local()))
    front = Front(ours)
    listening = asyncio.create_task(front.listen())
    try:
        yield front
    finally:
        front.close()
        async with asyncio.timeout(PATIENCE_S):
            await core
        await asyncio.gather(listening, return_exceptions=True)


@asynccontextmanager
async def fake_upstream(behaviour: Behaviour | None = None) -> AsyncIterator[FakeUpstream]:
    upstream = FakeUpstream(behaviour)
    await upstream.start()
    try:
        yield upstream
    finally:
        await upstream.stop()


@asynccontextmanager
async def both(
    behaviour: Behaviour | None = None, **settings: object
) -> AsyncIterator[tuple[Front, FakeUpstream]]:
    """A ready gateway and its upstream, whose record starts empty."""
    async with fake_upstream(behaviour) as upstream, gateway(upstream.url, **settings) as front:
        await front.until(lambda: front.ready)
        upstream.received.clear()
        yield front, upstream


def only(received: list[Received]) -> Received:
    (request,) = received
    return request
