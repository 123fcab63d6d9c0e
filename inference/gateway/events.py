"""Server-sent events out of bytes as they arrive, cut anywhere, also inside a character.

Knows the format: UTF-8 whatever the headers say, and lines that end with a line feed only. A model may write any of
the other characters that Unicode counts as line ends, and JSON does not escape them. Does not know what events say.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from inference.gateway.errors import Broken

# The chunk of one token with its logprobs has a few kilobytes.
MAX_LINE_BYTES = 8 * 1024 * 1024
FIELD = b"data:"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # may stand before the first line


async def read_events(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The data of every event that has some. Raises Broken for a line without end."""
    rest = b""
    async for part in parts:
        *lines, rest = (rest + part).split(b"\n")
        for line in lines:
            if data := _data(line):
                yield data
        if len(rest) > MAX_LINE_BYTES:
            raise Broken(f"the upstream sent a line of more than {MAX_LINE_BYTES} bytes")
    if data := _data(rest):  # the last one needs no line end
        yield data


def _data(line: bytes) -> bytes:
    line = line.removeprefix(BYTE_ORDER_MARK)
    return line.removeprefix(FIELD).strip() if line.startswith(FIELD) else b""
