"""What every engine is asked, and which figures come of it: workloads a to e, and how much of d an engine can take.

Each makes its prompts anew for every round from a seed of the workload and the round, so that all engines are asked
the same and nothing of an earlier round is found again. Workload e is there to show what was not tuned: no default of
ours may ever be chosen by it.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from inference.types import Segment
from tests.bench.engines.answers import Answer, p50_ms, p95_ms, tokens_per_s
from tests.bench.engines.asks import Ask, Writer
from tests.bench.engines.doors import Door

# Requests that an engine works on at once, everywhere the same; more wait in the engine.
AT_ONCE = 16
SHARE_OF_CAPACITY = 0.8

Figures = dict[str, float]


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is asked. Ranges are drawn from evenly, both ends included."""

    shared: tuple[int, int, int, int] = (16, 200, 150, 64)  # requests, prompt, of it shared, answer
    turns: tuple[int, int, int, int] = (8, 6, 40, 48)  # conversations, turns, new tokens, answer
    long: tuple[int, int] = (1000, 64)  # prompt, answer
    capacity_requests: int = 64
    open_requests: int = 500
    open_prompt: tuple[int, int] = (20, 400)
    open_answer: tuple[int, int] = (16, 128)
    mixed_requests: int = 64
    mixed_prompt: tuple[int, int] = (20, 800)
    mixed_answer: tuple[int, int] = (16, 256)
    decode: tuple[int, int] = (96, 64)  # prompt, answer, where decode alone is looked at


FULL = Sizes()
QUICK = Sizes((4, 60, 40, 8), (2, 2, 40, 6), (120, 8), 6, 8, (20, 60), (4, 8), 4, (20, 80), (4, 12), (8, 32))


@dataclass(frozen=True, slots=True)
class Round:
    """One round of one workload, at one door. `per_s` is the rate of arrivals, where they come by the clock."""

    door: Door
    writer: Writer
    sizes: Sizes
    number: int
    per_s: float = 0.0

    def chance(self, workload: str) -> random.Random:
        return random.Random(f"{workload} {self.number}")


async def shared_prefix(asked: Round) -> Figures:
    chance = asked.chance("a")
    num, num_prompt, num_shared, num_new = asked.sizes.shared
    shared = asked.writer.words(num_shared, chance)
    prompts = [asked.writer.plain(num_prompt, chance, shared) for _ in range(num)]
    answers = await _all_at_once(asked.door, [asked.writer.ask(prompt, num_new) for prompt in prompts])
    return {
        "tokens_per_s": tokens_per_s(answers),
        "ttft_p50_ms": p50_ms(answer.ttft_s for answer in answers),
        "tpot_p50_ms": p50_ms(answer.tpot_s for answer in answers),
    }


async def conversations(asked: Round) -> Figures:
    num, num_turns, num_prompt, num_new = asked.sizes.turns

    async def talk(name: str) -> list[Answer]:
        chance = asked.chance(name)
        history: tuple[Segment, ...] = ()
        num_known, answers = 0, []
        for _ in range(num_turns):
            history = asked.writer.turn(history, num_known, num_prompt, chance)
            ask = asked.writer.ask(history, num_new, conversation=f"{name} {asked.number}")
            answers.append(await asked.door.answer(ask))
            history = asked.writer.answered(history, answers[-1].ids, answers[-1].text)
            num_known = len(ask.ids) + num_new
        return answers

    talks = await asyncio.gather(*(talk(f"b {number}") for number in range(num)))
    return {
        "tokens_per_s": tokens_per_s([answer for answers in talks for answer in answers]),
        "ttft_last_turn_ms": p50_ms(answers[-1].ttft_s for answers in talks),
    }


async def long_prompt(asked: Round) -> Figures:
    num_prompt, num_new = asked.sizes.long
    prompt = asked.writer.plain(num_prompt, asked.chance("c"))
    answer = await asked.door.answer(asked.writer.ask(prompt, num_new))
    return {"ttft_ms": 1000 * answer.ttft_s, "decode_tokens_per_s": 1 / answer.tpot_s}


async def capacity(asked: Round) -> Figures:
    """Requests of workload d that are answered in a second where another always comes for one that ended."""
    asks = _open_asks(asked, "capacity", asked.sizes.capacity_requests)
    answers = await _in_flight(asked.door, asks)
    last_s = max(answer.ended_at_s for answer in answers)
    return {"requests_per_s": len(answers) / (last_s - min(answer.asked_at_s for answer in answers))}


async def open_loop(asked: Round) -> Figures:
    """Requests come when the clock says so, whatever the engine is doing."""
    asks = _open_asks(asked, "d", asked.sizes.open_requests)
    chance = asked.chance("d arrivals")

    async def later(ask: Ask, wait_s: float) -> Answer:
        await asyncio.sleep(wait_s)
        return await asked.door.answer(ask)

    due_s, waits_s = 0.0, []
    for _ in asks:
        due_s += chance.expovariate(asked.per_s)
        waits_s.append(due_s)
    answers = await asyncio.gather(*map(later, asks, waits_s))
    return {
        "per_s": asked.per_s,
        "ttft_p95_ms": p95_ms(answer.ttft_s for answer in answers),
        "tpot_p95_ms": p95_ms(answer.tpot_s for answer in answers),
        "tokens_per_s": tokens_per_s(answers),
    }


async def never_tuned(asked: Round) -> Figures:
    chance = asked.chance("e")
    asks = [
        asked.writer.ask(
            asked.writer.plain(chance.randint(*asked.sizes.mixed_prompt), chance),
            chance.randint(*asked.sizes.mixed_answer),
            temperature=0.7,
            seed=number,
        )
        for number in range(asked.sizes.mixed_requests)
    ]
    answers = await _in_flight(asked.door, asks)
    return {"tokens_per_s": tokens_per_s(answers), "ttft_p50_ms": p50_ms(answer.ttft_s for answer in answers)}


WORKLOADS: dict[str, Callable[[Round], Awaitable[Figures]]] = {
    "a": shared_prefix,
    "b": conversations,
    "c": long_prompt,
    "capacity": capacity,
    "d": open_loop,
    "e": never_tuned,
}


async def warm_up(door: Door, writer: Writer) -> None:
    """What an engine does at its first requests only, compiling for one."""
    chance = random.Random("warm-up")
    asks = [writer.ask(writer.plain(20 + 10 * number, chance), 6) for number in range(4)]
    await _all_at_once(door, asks)


def _open_asks(asked: Round, seed: str, num: int) -> list[Ask]:
    chance = asked.chance(seed)
    return [
        asked.writer.ask(
            asked.writer.plain(chance.randint(*asked.sizes.open_prompt), chance),
            chance.randint(*asked.sizes.open_answer),
        )
        for _ in range(num)
    ]


async def _all_at_once(door: Door, asks: Sequence[Ask]) -> list[Answer]:
    return list(await asyncio.gather(*map(door.answer, asks)))


async def _in_flight(door: Door, asks: Sequence[Ask]) -> list[Answer]:
    """All, `AT_ONCE` of them at a time."""
    seats = asyncio.Semaphore(AT_ONCE)

    async def seated(ask: Ask) -> Answer:
        async with seats:
            return await door.answer(ask)

    return list(await asyncio.gather(*map(seated, asks)))
