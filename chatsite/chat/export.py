"""Everything of a person as one zip, made while it is sent: nothing lies on a disk, and one conversation at a time is
in memory.

Knows the file's shape; each part of it is read by a function of its own in `export_parts`. Knows no HTTP.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from zipfile import ZIP_DEFLATED, ZipFile

from chatsite.chat import export_parts
from chatsite.chat.export_parts import Part


class _Outbox:
    """What was written since it was last taken. It cannot be wound back, so the zip is written straight through."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def write(self, piece: bytes) -> int:
        self._pieces.append(bytes(piece))
        return len(piece)

    def flush(self) -> None:
        pass

    def taken(self) -> bytes:
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)


async def zipped(user_id: int) -> AsyncGenerator[bytes, None]:
    """The zip in pieces."""
    outbox = _Outbox()
    archive = ZipFile(outbox, "w", ZIP_DEFLATED)  # type: ignore[call-overload]
    async for part in export_parts.of(user_id):
        await asyncio.to_thread(_write, archive, part)
        if piece := outbox.taken():
            yield piece
    archive.close()
    yield outbox.taken()


def _write(archive: ZipFile, part: Part) -> None:
    archive.writestr(part.name, part.text)
