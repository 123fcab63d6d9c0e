"""One live site with its gRPC door open, a key for it, and channels to it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import grpc
import pytest

from chatsite.grpc_door.chat_pb2_grpc import ChatStub
from tests.livesite import LiveSite, free_port, live_site


@pytest.fixture(scope="package")
def site() -> Iterator[LiveSite]:
    address = f"127.0.0.1:{free_port()}"
    with live_site("grpc", CHAT_GRPC_ADDRESS=address, SEMCACHE_BUDGET_MS="5000") as running:
        yield running


@pytest.fixture(scope="package")
def key(site: LiveSite) -> str:
    return site.key("ann")


@pytest.fixture
async def channel(site: LiveSite) -> AsyncIterator[grpc.aio.Channel]:
    async with grpc.aio.insecure_channel(site.environ["CHAT_GRPC_ADDRESS"]) as opened:
        yield opened


@pytest.fixture
def stub(channel: grpc.aio.Channel) -> ChatStub:
    return ChatStub(channel)
