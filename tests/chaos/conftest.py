"""One stack for all tests of this folder: they leave it with an engine and at least one web process."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.chaos.oracle import Tab
from tests.chaos.stack import Stack, running_stack


@pytest_asyncio.fixture(scope="package", loop_scope="package")
async def stack() -> AsyncIterator[Stack]:
    async with running_stack() as running:
        yield running


@pytest_asyncio.fixture(loop_scope="package")
async def tab(stack: Stack) -> AsyncIterator[Tab]:
    """A tab of the guest."""
    tab = Tab(stack, await stack.cookie())
    tab.start()
    yield tab
    await tab.close()


@pytest_asyncio.fixture(loop_scope="package")
async def second_tab(stack: Stack, tab: Tab) -> AsyncIterator[Tab]:
    """Another tab of the same guest."""
    second = Tab(stack, tab.cookie)
    second.start()
    yield second
    await second.close()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One loop for the folder, because its processes outlive a test."""
    for item in items:
        if "tests/chaos/" in str(item.path):
            item.add_marker(pytest.mark.asyncio(loop_scope="package"), append=False)
