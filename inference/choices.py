"""Several answers to one prompt: which requests they are, and their events as one stream.

Knows ids and seeds. Every choice is an ordinary generation: it can be attached to and cancelled under its own id.
Does not know how a generation is submitted or followed (`inference.client`).
"""

from __future__ import annotations

import asyncio
import hashlib
import uuid
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import TypeVar

from inference.errors import InvalidRequest
from inference.types import GenerateRequest

MAX_CHOICES = 128

T = TypeVar("T")

_NAMESPACE = uuid.UUID("6f1d3c0e-6a58-5d0b-9f53-2f1f0a7f5f0d")


def choice_of(request: GenerateRequest, index: int) -> GenerateRequest:
    """Choice 0 is the request itself. The others depend on its id, its seed and `index` only: asking again, or for
    more of them, gives the same ones."""
    if index == 0:
        return request
    sampling = request.sampling
    if sampling.seed is not None:
        sampling = replace(sampling, seed=_derived_seed(sampling.seed, index))
    choice_id = str(uuid.uuid5(_NAMESPACE, f"{request.generation_id}/{index}"))
    return replace(request, generation_id=choice_id, sampling=sampling)


def choices_of(request: GenerateRequest, num_choices: int) -> list[GenerateRequest]:
    """Raises InvalidRequest for an impossible number."""
    if not isinstance(num_choices, int) or not 1 <= num_choices <= MAX_CHOICES:
        raise InvalidRequest(f"1 to {MAX_CHOICES} choices, not {num_choices!r}")
    return [choice_of(request, index) for index in range(num_choices)]


async def merged(streams: Sequence[AsyncGenerator[T, None]]) -> AsyncGenerator[tuple[int, T], None]:
    """(number of the stream, event) in the order of arrival, until all have ended. Raises what a stream raises.

    No queue: of every stream one event is asked for at a time, what comes later waits where it is made.
    """
    if len(streams) == 1:  # a task for each event would cost more than the event
        async with aclosing(streams[0]) as only:
            async for lone in only:
                yield 0, lone
        return
    asked = {_ask_next(stream): index for index, stream in enumerate(streams)}
    try:
        while asked:
            answered, _ = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
            for task in sorted(answered, key=asked.__getitem__):
                event, index = task.result(), asked.pop(task)
                if event is not None:
                    asked[_ask_next(streams[index])] = index
                    yield index, event
    finally:
        for task in asked:
            task.cancel()
        await asyncio.gather(*asked, return_exceptions=True)
        for stream in streams:
            await stream.aclose()


def _ask_next(stream: AsyncGenerator[T, None]) -> asyncio.Task[T | None]:
    async def ask() -> T | None:
        return await anext(stream, None)

    return asyncio.create_task(ask())


def _derived_seed(seed: int, index: int) -> int:
    """63 bits, the same on every machine."""
    digest = hashlib.blake2b(f"{seed}/{index}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1
