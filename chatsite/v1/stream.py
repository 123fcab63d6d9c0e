"""A chat completion as server-sent events, in the order that breaks no client.

Role chunk; content chunks with `finish_reason` null; an empty delta with the reason; with `include_usage` a chunk
without choices; `[DONE]`. Keep-alives are comments. A failure in mid-stream is an error object and then the end.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator

from chatsite.chat.events import Accepted, Ended, Piece
from chatsite.errors import SiteError
from chatsite.sse import KEEP_ALIVE_S, Pump
from chatsite.v1 import formats
from chatsite.v1.errors import ApiError, from_engine, from_site
from chatsite.v1.formats import Completion
from inference.errors import EngineError

logger = logging.getLogger(__name__)

# Headers wait so long for a refusal and for the cache's word; then the client is better off with a start.
HEAD_WAIT_S = 2.0


async def read_head(pump: Pump) -> Accepted | None:
    """What the cache said; None when that takes too long. Raises the refusal when there is one."""
    while (event := await pump.next(HEAD_WAIT_S)) is not None:
        if isinstance(event, Accepted):
            return event
    return None


async def stream(completion: Completion, pump: Pump, *, includes_usage: bool) -> AsyncGenerator[bytes]:
    """The bytes of the answer. Closing the generator cancels the generation."""
    try:
        yield completion.chunk({"role": "assistant", "content": "", "refusal": None})
        num_tokens = 0
        while True:
            event = await pump.next(KEEP_ALIVE_S)
            match event:
                case None:
                    yield formats.KEEP_ALIVE
                case Piece():
                    num_tokens += event.num_tokens
                    yield completion.chunk({"content": event.text})
                case Ended():
                    for chunk in _end(completion, event, num_tokens, includes_usage=includes_usage):
                        yield chunk
                    return
    except SiteError as error:
        yield formats.error_event(from_site(error))
    except EngineError as error:
        yield formats.error_event(from_engine(error))
    except Exception:
        logger.exception("an answer failed in mid-stream")
        yield formats.error_event(ApiError(500, "internal_error", "The server made a mistake."))
    finally:
        await pump.close()


def _end(completion: Completion, ended: Ended, num_tokens: int, *, includes_usage: bool) -> list[bytes]:
    failure = formats.failure_of(ended)
    if failure is not None:
        return [formats.error_event(failure)]
    chunks = [completion.chunk({}, ended)]
    if includes_usage:
        chunks.append(completion.usage_chunk(formats.usage_of(ended, num_tokens)))
    return [*chunks, formats.DONE]
