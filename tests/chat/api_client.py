"""Browsers for tests of the chat's API, as far as HTTP goes."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest_asyncio
from django.test import AsyncClient

from chatsite.accounts.models import User

KIND = "application/json"


@pytest_asyncio.fixture(loop_scope="package")
async def page(engine: Any, user: User) -> AsyncClient:
    """A browser of the user."""
    client = AsyncClient()
    await client.aforce_login(user)
    return client


@pytest_asyncio.fixture(loop_scope="package")
async def stranger(engine: Any, other_user: User) -> AsyncIterator[AsyncClient]:
    client = AsyncClient()
    await client.aforce_login(other_user)
    yield client


async def read(response: Any) -> bytes:
    """The whole of a stream."""
    return b"".join([chunk async for chunk in response.streaming_content])


def events_of(body: bytes) -> list[dict[str, Any]]:
    return [json.loads(line[6:]) for line in body.decode().splitlines() if line.startswith("data: ")]
