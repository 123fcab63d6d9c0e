"""Conversations as a file that is written while it is read: one conversation in memory at a time.

Knows the two forms; how rows become values is `rows`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from uuid import UUID

import msgspec

from chatsite.chat.transfer import markdown, rows
from chatsite.chat.transfer.form import FORMAT, VERSION, File, Talk
from chatsite.db import run_in_db
from chatsite.errors import NotFound

_encoder = msgspec.json.Encoder()


def file_of(talk: Talk) -> str:
    """One conversation in our own form."""
    return _encoder.encode(File(format=FORMAT, version=VERSION, conversations=[talk])).decode()


async def as_json(user_id: int, conversations: Sequence[UUID]) -> AsyncIterator[bytes]:
    """Our own form, which can be imported again, with all branches."""
    yield f'{{"format":"{FORMAT}","version":{VERSION},"conversations":['.encode()
    separator = b"\n"
    async for talk in _talks(user_id, conversations):
        yield separator + _encoder.encode(talk)
        separator = b",\n"
    yield b"\n]}\n"


async def as_markdown(user_id: int, conversations: Sequence[UUID]) -> AsyncIterator[bytes]:
    """For people: of each conversation the branch that is shown."""
    separator = ""
    async for talk in _talks(user_id, conversations):
        yield (separator + markdown.written(talk)).encode()
        separator = "\n---\n\n"


async def _talks(user_id: int, conversations: Sequence[UUID]) -> AsyncIterator[Talk]:
    for conversation in conversations:
        try:
            yield await run_in_db(rows.load, user_id, conversation)
        except NotFound:
            continue  # erased meanwhile
