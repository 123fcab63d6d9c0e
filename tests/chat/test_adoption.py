"""Answers whose process died: adopted, finished byte by byte, or ended; nothing stays open for ever."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.utils import timezone

from chatsite.accounts.callers import caller_of_user
from chatsite.accounts.models import User
from chatsite.chat import adoption, generations, store
from chatsite.chat.adoption import adopt_orphans, reap
from chatsite.chat.models import Conversation, Generation
from chatsite.chat.running import Running, running
from chatsite.db import run_in_db
from inference.testing import script_text
from tests.chat.socket import Socket
from tests.chat.test_flow import stored
from tests.patience import PATIENCE_S


async def wait_final(generation: str) -> Generation:
    async with asyncio.timeout(PATIENCE_S):
        while (row := await run_in_db(stored, generation)).finished_at is None:
            await asyncio.sleep(0.02)
    return row


async def test_a_handed_over_answer_is_finished_from_its_checkpoint(socket: Socket) -> None:
    accepted = await socket.send(script_text(tokens=60, delay_ms=10))
    await socket.until("delta")
    await running().abandon(UUID(accepted["generation"]))
    assert (await run_in_db(stored, accepted["generation"])).state == "running"
    adopters = [Running(), Running()]
    counts = await asyncio.gather(*(adopt_orphans(adopter) for adopter in adopters))
    assert sum(counts) == 1, "two processes took the same answer"
    done = await socket.until("done")
    row = await wait_final(accepted["generation"])
    assert row.state == "complete"
    assert row.message is not None
    assert row.message.text == socket.text_of(done)
    assert len(row.message.token_ids) == 60
    assert row.generated_tokens == 60


async def test_a_dead_process_is_noticed_by_its_lease(socket: Socket, monkeypatch: Any) -> None:
    await socket.send(script_text(tokens=400, delay_ms=10))
    await socket.until("delta")
    # As if this process had been killed: it neither checkpoints nor gives its lease back.
    monkeypatch.setattr(generations, "checkpoint", set)
    adopter = Running()
    async with asyncio.timeout(PATIENCE_S):
        while not await adopt_orphans(adopter):
            await asyncio.sleep(0.05)
    monkeypatch.undo()
    await adopter.drain(0)


async def test_what_the_engine_does_not_know_becomes_interrupted(engine: Any, user: User) -> None:
    orphan = await run_in_db(store.store_question, caller_of_user(user), store.Question(uuid4(), "lost"))
    await run_in_db(generations.release, orphan.generation)
    adopter = Running()
    assert await adopt_orphans(adopter) == 1
    row = await wait_final(str(orphan.generation))
    assert (row.state, row.error_code) == ("interrupted", "generation_unknown")
    await adopter.drain(1)


async def test_what_is_erased_while_it_is_taken_over_is_left_alone(
    engine: Any, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    orphan = await run_in_db(store.store_question, caller_of_user(user), store.Question(uuid4(), "gone"))
    await run_in_db(generations.release, orphan.generation)
    adopt = generations.adopt

    def adopt_and_erase(generation: UUID) -> bool:
        taken = adopt(generation)
        Conversation.objects.all().delete()
        return taken

    monkeypatch.setattr(generations, "adopt", adopt_and_erase)
    assert await adopt_orphans(Running()) == 0


async def test_no_mistake_in_one_sweep_ends_the_sweeping(
    engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    swept = asyncio.Event()

    async def settle_owed() -> int:
        if not num_swept:
            num_swept.append(1)
            raise KeyError("a mistake of ours")
        swept.set()
        return 0

    num_swept: list[int] = []
    monkeypatch.setattr(adoption, "settle_owed", settle_owed)
    sweeping = asyncio.create_task(adoption.sweep_forever(Running(), 0.01))
    async with asyncio.timeout(PATIENCE_S):
        await swept.wait()
    sweeping.cancel()
    await asyncio.gather(sweeping, return_exceptions=True)


async def test_the_reaper_ends_what_is_long_past_its_deadline(engine: Any, user: User) -> None:
    late = await run_in_db(store.store_question, caller_of_user(user), store.Question(uuid4(), "late"))
    young = await run_in_db(store.store_question, caller_of_user(user), store.Question(uuid4(), "young"))
    past = timezone.now() - timedelta(seconds=60)
    await run_in_db(Generation.objects.filter(pk=late.generation).update, deadline_at=past)
    assert await reap() == 1
    row = await run_in_db(stored, str(late.generation))
    assert (row.state, row.error_code, row.message and row.message.state) == (
        "failed",
        "deadline_exceeded",
        "failed",
    )
    assert (await run_in_db(stored, str(young.generation))).state == "queued"


async def test_a_lease_can_be_kept_only_by_its_owner(engine: Any, user: User) -> None:
    row = await run_in_db(store.store_question, caller_of_user(user), store.Question(uuid4(), "mine"))
    progress = generations.Progress("text", (1, 2), "tokenizer", 2)
    assert await run_in_db(generations.checkpoint, {row.generation: progress}) == {row.generation}
    assert not await run_in_db(generations.adopt, row.generation)
    await run_in_db(Generation.objects.filter(pk=row.generation).update, lease_owner="another")
    other = generations.Progress("other", (), "", 9)
    assert not await run_in_db(generations.checkpoint, {row.generation: other})
    ending = generations.Ending(generations.State.COMPLETE)
    standing, _ = await run_in_db(generations.finish, row.generation, ending, other)
    assert standing == "queued"
    kept = await run_in_db(stored, str(row.generation))
    assert (kept.stored_seq, kept.message and kept.message.text) == (2, "text")
