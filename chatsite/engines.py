"""Which engines there are, which model each serves, and which one answers a request.

A request goes to an engine of the model that it names; among several of one model, to the one that has kept the
conversation's KV. Who makes an answer that another process began is not written down: all are asked at once.
A gRPC channel belongs to the loop that made it, so each loop has its own; a worker's is made after the fork
(`chatsite.loop`). Knows addresses and models; what is asked of an engine is its callers' business.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from itertools import takewhile
from typing import TypeVar
from weakref import WeakKeyDictionary

from django.conf import settings

from chatsite.engine import SAYS_WITHIN_S, Engine
from chatsite.served import Served
from inference.client import EmbedResult, EngineClient
from inference.errors import EngineError, EngineUnavailable, GenerationUnknown, ModelLoading, QueueFull
from inference.types import EngineInfo, Event, GenerateRequest, Owner, Segment, Submitted

T = TypeVar("T")

# What another engine of the same model may be better off with.
GOES_ELSEWHERE = (EngineUnavailable, ModelLoading, QueueFull)
# So often it is looked whether those that say nothing are away.
LOOK_S = 0.25


class Engines:
    """The engines of a site, in the order of ENGINE_ADDRESS, on one loop. One alone is asked without ado."""

    def __init__(self, every: Sequence[Engine], queue_gap: int) -> None:
        """With `queue_gap` more requests in its queue than the least busy engine, one gives its next ones to others."""
        self.every = tuple(every)
        self._queue_gap = queue_gap
        self._has_waited = False

    async def served(self, model: str = "") -> Served:
        """Waits for engines that never said anything: once, and again where nobody else is known to serve `model`."""
        silent = [asking for engine in self.every if (asking := engine.ask()) is not None]
        if silent and (not self._has_waited or self._served().chosen(model) is None):
            await asyncio.wait(silent, timeout=SAYS_WITHIN_S)
            self._has_waited = True
        return self._served()

    async def ranked(self, model: str, owner: Owner, segments: Sequence[Segment]) -> list[Engine]:
        """Those that may answer, the best first. Raises EngineUnavailable where nobody is known to serve the model."""
        if len(self.every) == 1:
            return [*self.every]
        info = (await self.served(model)).chosen(model)
        if info is None:
            raise EngineUnavailable(f"no engine that serves {model or 'a model'} can be reached")
        serving = [engine for engine in self.every if engine.info and engine.info.model == info.model]
        key = _key_of(owner, segments)
        crowded = self._queue_gap + min((one.num_waiting for one in serving if not one.is_away), default=0)
        return sorted(
            serving,
            key=lambda one: (one.is_away, one.num_waiting >= crowded, _weight(one.address, key)),
        )

    async def foremost(self, model: str, owner: Owner, segments: Sequence[Segment]) -> EngineInfo | None:
        """What the one says of itself that is asked first; None while that is unknown."""
        await self.served(model)
        try:
            best, *_ = await self.ranked(model, owner, segments)
        except EngineUnavailable:
            return None
        return best.info

    async def submit(self, request: GenerateRequest, model: str) -> tuple[Engine, Submitted]:
        """Hands the request to the best engine that takes it. Raises the client's errors."""
        errors: list[EngineError] = []
        for engine in await self.ranked(model, request.owner, request.segments):
            try:
                return engine, await self._submitted(engine, request)
            except GOES_ELSEWHERE as error:
                engine.note(error)
                errors.append(error)
        # One that loads is back soon, whatever has become of the others.
        raise next((error for error in errors if isinstance(error, ModelLoading)), errors[0])

    async def _submitted(self, engine: Engine, request: GenerateRequest) -> Submitted:
        """Raises EngineUnavailable also where it was started again, and serves another model by now."""
        meant = engine.info
        submitted = await engine.client.submit(request)
        engine.take_queue(submitted.num_waiting)
        await engine.meet(submitted.engine)
        if len(self.every) > 1 and meant and engine.info and engine.info.model != meant.model:
            await engine.client.cancel(request.generation_id)
            raise EngineUnavailable(f"no engine that serves {meant.model} can be reached")
        return submitted

    async def attach(self, generation: str, after: int = 0) -> AsyncGenerator[Event, None]:
        """The events of whoever makes that answer. Raises GenerationUnknown, EngineUnavailable."""
        streams = [engine.client.attach(generation, after) for engine in self.every]
        if len(streams) == 1:
            async with aclosing(streams[0]) as events:
                async for event in events:
                    yield event
            return
        asked = {
            asyncio.ensure_future(anext(stream)): engine
            for stream, engine in zip(streams, self.every, strict=True)
        }
        by_task = dict(zip(asked, streams, strict=True))
        try:
            first = await _first(asked, lambda _: True)
            yield first.result()
            async for event in by_task[first]:
                yield event
        finally:
            await _dropped(asked)
            for stream in streams:
                await stream.aclose()

    async def cancel(self, generation: str, *, only_if_orphaned: bool = False) -> bool:
        """True when one of them was at it and ends it. Raises the client's errors where one said nothing."""
        if len(self.every) == 1:
            return await self.every[0].client.cancel(generation, only_if_orphaned=only_if_orphaned)
        asked = {
            asyncio.ensure_future(engine.client.cancel(generation, only_if_orphaned=only_if_orphaned)): engine
            for engine in self.every
        }
        try:
            await _first(asked, bool)
        except GenerationUnknown:
            return False
        finally:
            await _dropped(asked)
        return True

    async def forget(self, owner: Owner) -> int:
        """By all: a conversation may have been answered by each. Raises the client's errors where one was not told."""
        return sum(await asyncio.gather(*(engine.client.forget(owner) for engine in self.every)))

    async def embed(self, texts: Sequence[str]) -> EmbedResult:
        return await (await self.encoder()).client.embed(texts)

    async def verify(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        return await (await self._lent_by(lambda served: served.verifier)).client.verify(pairs)

    async def encoder(self) -> Engine:
        """The one whose embedder everybody uses."""
        return await self._lent_by(lambda served: served.encoder)

    async def close(self) -> None:
        for engine in self.every:
            await engine.close()

    async def _lent_by(self, wanted: Callable[[Served], EngineInfo | None]) -> Engine:
        """The first engine where none is known to have it: it says best why not."""
        if len(self.every) == 1:
            return self.every[0]
        info = wanted(await self.served())
        return next((engine for engine in self.every if info and engine.info is info), self.every[0])

    def _served(self) -> Served:
        infos = tuple(engine.info for engine in self.every if engine.info is not None)
        return Served(infos, is_all=len(infos) == len(self.every))


_by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, Engines] = WeakKeyDictionary()


def engines() -> Engines:
    """Those of the running loop; each is connected to at its first call."""
    loop = asyncio.get_running_loop()
    if loop not in _by_loop:
        config = settings.CONFIG
        _by_loop[loop] = Engines(
            [
                Engine(
                    EngineClient(
                        address,
                        config.engine_token,
                        config.engine_tls_cert,
                        call_timeout_s=config.engine_call_timeout_s,
                    )
                )
                for address in config.engine_addresses
            ],
            config.engine_queue_gap,
        )
    return _by_loop[loop]


async def served(model: str = "") -> Served:
    """What the running loop's engines serve, a few seconds old while they answer."""
    return await engines().served(model)


async def close_engines() -> None:
    """Closes the running loop's clients, if there are any."""
    found = _by_loop.pop(asyncio.get_running_loop(), None)
    if found is not None:
        await found.close()


async def _first(asked: Mapping[asyncio.Task[T], Engine], wins: Callable[[T], bool]) -> asyncio.Task[T]:
    """The first answer that wins. Those that are away are waited for only while nobody else has said no.

    Raises GenerationUnknown where all said no, EngineUnavailable where one said nothing, and what one failed with.
    """
    waiting = set(asked)
    trouble: EngineError = GenerationUnknown("no engine knows that answer")
    while waiting:
        done, waiting = await asyncio.wait(waiting, timeout=LOOK_S, return_when=asyncio.FIRST_COMPLETED)
        for one in done:
            error = one.exception()
            if error is None and wins(one.result()):
                return one
            if isinstance(error, EngineError) and not isinstance(error, GenerationUnknown):
                trouble = error
            elif error is not None and not isinstance(error, EngineError):
                raise error
        for one in waiting:
            asked[one].ask()
        if len(waiting) < len(asked) and all(asked[one].is_away for one in waiting):
            break
    if waiting:
        raise EngineUnavailable("an engine that may know that answer cannot be reached")
    raise trouble


async def _dropped(asked: Mapping[asyncio.Task[T], Engine]) -> None:
    for one in asked:
        one.cancel()
    await asyncio.gather(*asked, return_exceptions=True)


def _key_of(owner: Owner, segments: Sequence[Segment]) -> str:
    """What stays the same from one turn to the next; without a conversation it is how the prompt begins."""
    if owner.conversation:
        return f"{owner.tenant}\0{owner.conversation}"
    before = [*takewhile(lambda segment: segment.role != "user", segments)]
    return "\0".join([owner.tenant, *(segment.text for segment in segments[: len(before) + 1])])


def _weight(address: str, key: str) -> bytes:
    """Rendezvous hashing: an engine that comes or goes moves its own share of the keys and no other."""
    return hashlib.blake2b(f"{address}\0{key}".encode(), digest_size=8).digest()
