"""An answer that no page follows any more: it goes on for a while, then ends as interrupted with its text kept."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import pytest

from chatsite.accounts.models import User
from chatsite.chat import ending
from chatsite.chat.models import Generation
from chatsite.chat.running import running
from chatsite.db import run_in_db
from inference.testing import EngineProcess, script_text
from tests.chat.conftest import open_socket
from tests.patience import PATIENCE_S

LONG = script_text(tokens=2000, delay_ms=20)


async def test_an_answer_that_nobody_follows_ends_as_interrupted_and_keeps_its_text(
    engine: EngineProcess, user: User, config: Any
) -> None:
    config(orphan_ttl_s=0.2)
    tab = await open_socket(user)
    accepted = await tab.send(LONG)
    await tab.until("delta")
    await tab.close()
    row = await _ended(accepted["generation"])
    assert (row.state, row.finish_reason) == ("interrupted", "orphaned")
    assert row.message is not None
    assert row.message.text
    assert row.message.token_ids


async def test_an_answer_that_a_page_follows_is_never_an_orphan(
    engine: EngineProcess, user: User, config: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    config(orphan_ttl_s=0.1)
    monkeypatch.setattr(ending, "ORPHAN_CHECK_S", 0.01)
    tab = await open_socket(user)
    _, done = await tab.ask(script_text(tokens=30, delay_ms=20))
    assert done["state"] == "complete"
    await tab.close()


async def test_an_answer_that_another_process_follows_goes_on(
    engine: EngineProcess, user: User, config: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine counts the clients: what this process cannot see is asked of the owner of the truth."""
    config(orphan_ttl_s=0.1)
    monkeypatch.setattr(ending, "ORPHAN_CHECK_S", 0.01)
    tab = await open_socket(user)
    accepted = await tab.send(script_text(tokens=40, delay_ms=20))
    await tab.until("delta")
    other_process = engine.client()
    events = other_process.attach(accepted["generation"])
    await anext(events)
    await tab.close()
    async for _ in events:
        pass
    await other_process.close()
    assert (await _ended(accepted["generation"])).state == "complete"


async def _ended(generation: str) -> Generation:
    live = running().get(UUID(generation))
    if live is not None:
        async with asyncio.timeout(PATIENCE_S):
            await live.wait_end()
    return await run_in_db(Generation.objects.select_related("message").get, pk=generation)
