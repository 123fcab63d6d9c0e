"""Checkpoints of all answers together: few statements, and nobody pays for another's trouble."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext

from chatsite.accounts.callers import caller_of_user
from chatsite.accounts.models import User
from chatsite.chat import generations, keeping, store
from chatsite.chat.generations import Progress
from chatsite.chat.keeping import Keeper, LeaseLost
from chatsite.chat.models import Generation, Message
from chatsite.db import run_in_db
from tests.patience import PATIENCE_S


async def questions(user: User, num: int) -> list[UUID]:
    return [
        (
            await run_in_db(store.store_question, caller_of_user(user), store.Question(uuid4(), f"q{n}"))
        ).generation
        for n in range(num)
    ]


def text_of(generation: UUID) -> str:
    return Message.objects.values_list("text", flat=True).get(generation=generation)


async def until_stored(generation: UUID, text: str) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while await run_in_db(text_of, generation) != text:
            await asyncio.sleep(0.02)


async def end(*tasks: asyncio.Task[None]) -> None:
    """Nothing of a test is left to write when its tables are emptied."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    writers = [task for task in asyncio.all_tasks() if task.get_name() == "checkpoints"]
    await asyncio.gather(*writers)


async def test_many_answers_are_stored_by_as_many_statements_as_one(engine: Any, user: User) -> None:
    def num_statements(progress: dict[UUID, Progress]) -> int:
        with CaptureQueriesContext(
            connection,
        ) as captured:
            assert generations.checkpoint(progress) == set(progress)
        return len(captured)

    made = await questions(user, 12)
    progress = {pk: Progress(f'text {n} 中文 {{}},"', tuple(range(n)), "t", n) for n, pk in enumerate(made)}
    alone = await run_in_db(num_statements, {made[0]: progress[made[0]]})
    assert await run_in_db(num_statements, progress) == alone
    for pk, at in progress.items():
        row = await run_in_db(Generation.objects.select_related("message").get, pk=pk)
        assert row.message is not None
        assert (row.stored_seq, row.message.text, tuple(row.message.token_ids)) == (
            at.seq,
            at.text,
            at.token_ids,
        )


async def test_more_answers_than_a_portion_are_all_stored(
    engine: Any, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "PORTION", 2)
    *mine, stolen = await questions(user, 5)
    await run_in_db(Generation.objects.filter(pk=stolen).update, lease_owner="another")
    keeper = Keeper()
    tasks = [
        asyncio.create_task(keeper.keep(pk, lambda n=n: Progress(f"text {n}", seq=n)))  # type: ignore[misc]
        for n, pk in enumerate(mine)
    ]
    with pytest.raises(LeaseLost):
        await keeper.keep(stolen, lambda: Progress("stolen", seq=1))
    for n, pk in enumerate(mine):
        await until_stored(pk, f"text {n}")
    await end(*tasks)


async def test_a_lost_lease_ends_its_own_answer_only(engine: Any, user: User) -> None:
    mine, others = await questions(user, 2)
    await run_in_db(Generation.objects.filter(pk=others).update, lease_owner="another")
    keeper = Keeper()
    keeping_mine = asyncio.create_task(keeper.keep(mine, lambda: Progress("mine", seq=1)))
    with pytest.raises(LeaseLost):
        await keeper.keep(others, lambda: Progress("stolen", seq=1))
    await until_stored(mine, "mine")
    assert await run_in_db(text_of, others) == ""
    assert not keeping_mine.done()
    await end(keeping_mine)


async def test_a_text_that_the_database_refuses_costs_the_others_nothing(engine: Any, user: User) -> None:
    bad, good = await questions(user, 2)
    keeper = Keeper()
    tasks = [
        asyncio.create_task(keeper.keep(bad, lambda: Progress("nul \x00", seq=1))),
        asyncio.create_task(keeper.keep(good, lambda: Progress("good", seq=1))),
    ]
    await until_stored(good, "good")
    assert not any(task.done() for task in tasks)
    await end(*tasks)


async def test_a_database_that_is_away_is_tried_again(
    engine: Any, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    (generation,) = await questions(user, 1)
    real, num_calls = generations.checkpoint, 0

    def away_at_first(progress: dict[UUID, Progress]) -> set[UUID]:
        nonlocal num_calls
        num_calls += 1
        if num_calls < 3:
            raise OperationalError("away")
        return real(progress)

    monkeypatch.setattr(keeping.generations, "checkpoint", away_at_first)
    task = asyncio.create_task(Keeper().keep(generation, lambda: Progress("late", seq=1)))
    await until_stored(generation, "late")
    assert not task.done()
    await end(task)


async def test_an_answer_that_a_process_takes_over_from_itself_is_kept_on(engine: Any, user: User) -> None:
    """Its lease ran out while the database was away."""
    keeper, (generation,) = Keeper(), await questions(user, 1)
    first = asyncio.create_task(keeper.keep(generation, lambda: Progress("first")))
    await asyncio.sleep(0)
    second = asyncio.create_task(keeper.keep(generation, lambda: Progress("second")))
    await asyncio.sleep(0)
    first.cancel()
    await until_stored(generation, "second")
    await end(first, second)
    assert first.cancelled() and second.cancelled()
