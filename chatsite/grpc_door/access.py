"""Who calls: the API key in a call's metadata, and calls that end when their key does.

Knows metadata and statuses; which keys are good is `accounts.keys`, whether they still are `accounts.grants`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import TypeAlias

import grpc

from chatsite.accounts import keys
from chatsite.accounts.grants import Grant, watch
from chatsite.chat.turn import Caller
from chatsite.db import run_in_db
from chatsite.grpc_door.errors import status_of
from chatsite.v1.errors import told_of

Context: TypeAlias = grpc.aio.ServicerContext

KEY = "authorization"


@asynccontextmanager
async def calling(context: Context, scopes: Collection[str]) -> AsyncIterator[Caller]:
    """The caller whose key has one of `scopes`, for as long as the key is good. What the block raises, and a refused
    key, end the call with its status."""
    try:
        caller = await run_in_db(keys.authenticate, _header(context), scopes)
        async with watch.held(Grant.of_key(caller)):
            yield caller
    except grpc.aio.AbortError:
        raise
    except Exception as error:
        await context.abort(*status_of(told_of(error, "the gRPC door")))


def _header(context: Context) -> str | None:
    """The first one, as with HTTP; one of bytes is none."""
    given = (value for name, value in context.invocation_metadata() or () if name == KEY)
    value = next(given, None)
    return value if isinstance(value, str) else None
