"""JSON request bodies, decoded defensively and the same way at every HTTP door.

Knows size, syntax, depth, number range and which characters the database can keep. Knows no schema.
"""

from __future__ import annotations

from typing import Any

import msgspec
from django.conf import settings
from django.http import HttpRequest

from chatsite.errors import InvalidRequest, InvalidText, RequestError


class BodyTooLarge(RequestError):
    code = "body_too_large"
    status = 413


def read_json(request: HttpRequest, max_bytes: int | None = None) -> Any:
    """The decoded body. Raises BodyTooLarge, InvalidRequest (syntax, depth, absurd numbers) or InvalidText (NUL)."""
    limit = max_bytes or settings.CONFIG.max_body_bytes
    # Read one byte more than allowed instead of trusting Content-Length: a chunked body has none.
    raw = request.read(limit + 1)
    if len(raw) > limit:
        raise BodyTooLarge(f"The request body is larger than {limit} bytes.")
    return decode_json(raw)


def decode_json(raw: bytes) -> Any:
    """The value in `raw`, without NUL and without half surrogate pairs. Raises InvalidRequest or InvalidText."""
    try:
        value = msgspec.json.decode(raw)
    except RecursionError:
        raise InvalidRequest("The JSON body is nested too deeply.") from None
    except msgspec.MsgspecError as error:
        raise InvalidRequest(f"The body is not JSON that can be used: {error}") from error
    if b"\\u0000" in raw and _has_nul(value):
        raise InvalidText("A text holds a NUL character (\\u0000), which cannot be stored.")
    return value


def _has_nul(value: Any) -> bool:
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            if "\x00" in item:
                return True
        elif isinstance(item, dict):
            stack.extend(item)
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)
    return False
