"""History is taken token for token from the ledger: in one life, in the next, on another engine, and where the
template changes old turns."""

from __future__ import annotations

import asyncio
import json
import sys
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import pytest

from inference.client import EngineClient
from inference.testing import EngineProcess
from inference.types import Delta, Done, EngineStats, GenerateRequest, Owner, Sampling, Segment
from tests.inference.contract.conftest import Target
from tests.inference.front.families import QWEN_THINKING
from tests.patience import PATIENCE_S

# Behind the last question stand the end of the turn before, and the token whose KV is never written.
CLOSING_TOKENS, LAST_TOKEN = 2, 1
QUESTION = "What is the world?"
THINK, END_THINK = "<think>", "</think>"
END_THINK_ID = 324  # behind the vocabulary of the tiny model


@dataclass(slots=True)
class Chat:
    """One conversation of one client: what was said, with the ids."""

    client: EngineClient
    tokenizer: str
    history: tuple[Segment, ...] = ()
    owner: Owner = field(default_factory=lambda: Owner("tenant", str(uuid.uuid4()), "chat"))

    async def ask(self, question: str, sampling: Sampling) -> Done:
        """One turn; its answer is added to the history."""
        self.history = (*self.history, Segment("user", question))
        request = GenerateRequest(str(uuid.uuid4()), self.history, self.owner, sampling)
        text, ids = "", []
        async for event in self.client.generate(request):
            if isinstance(event, Delta):
                text, ids = text + event.text, [*ids, *event.token_ids]
            elif isinstance(event, Done):
                done = event
        self.history = (*self.history, Segment("assistant", text, tuple(ids), self.tokenizer))
        return done

    async def num_new(self, question: str) -> int:
        """The most that a turn may have to read that asks `question`."""
        alone = await self.client.count_tokens([Segment("user", question)])
        return alone.num_tokens + CLOSING_TOKENS + LAST_TOKEN

    def on(self, client: EngineClient) -> Chat:
        """The same conversation, told to another engine."""
        return replace(self, client=client)


CONTROL_IDS = range(3)  # the tiny model's; nobody is told of one in mid-answer, so it can't be in the history


def odd(seed: int) -> Sampling:
    """A random model's random answer: its own tokenizer would cut the text otherwise."""
    never = tuple((token, -100.0) for token in CONTROL_IDS)
    return Sampling(temperature=1.0, seed=seed, max_tokens=60, logit_bias=never)


GREEDY = Sampling(temperature=0.0, max_tokens=12)


@pytest.fixture
async def client(real: Target) -> AsyncIterator[EngineClient]:
    await real.engine.wait_until(is_ready=True)
    client = real.engine.client()
    yield client
    await client.close()


@pytest.fixture
async def chat(client: EngineClient) -> Chat:
    return Chat(client, (await client.info()).tokenizer)


def without_ledger(history: tuple[Segment, ...]) -> list[Segment]:
    return [Segment(segment.role, segment.text) for segment in history]


async def test_every_further_turn_reads_only_what_is_new(chat: Chat) -> None:
    before = (await chat.client.stats()).ledger_fallbacks
    await chat.ask("Hello", odd(1))
    for seed in (2, 3, 4):
        done = await chat.ask(QUESTION, odd(seed))
        assert done.usage.prefilled_tokens <= await chat.num_new(QUESTION)
    count = chat.client.count_tokens
    assert await count(chat.history) != await count(without_ledger(chat.history)), "no answer was odd"
    assert (await chat.client.stats()).ledger_fallbacks == before


async def test_the_next_life_and_another_engine_read_the_same_ids(
    real: Target, chat: Chat, run_folder: Path
) -> None:
    await chat.ask("Hello", odd(1))
    warm, again, elsewhere = chat, chat.on(real.engine.client()), chat.on(chat.client)
    first = await warm.ask(QUESTION, GREEDY)
    num_restarts = (await chat.client.stats()).core_restarts
    real.engine.kill_core()
    await _until(lambda stats: stats.is_ready and stats.core_restarts > num_restarts, chat.client)
    second = await again.ask(QUESTION, GREEDY)
    assert second.usage.prefilled_tokens == second.usage.prompt_tokens, "something was kept over the restart"
    async with _another(real.engine, run_folder / "second") as client:
        elsewhere = elsewhere.on(client)
        third = await elsewhere.ask(QUESTION, GREEDY)
        assert third.usage.prefilled_tokens == third.usage.prompt_tokens
        further = await elsewhere.ask(QUESTION, GREEDY)
        assert further.usage.prefilled_tokens <= await elsewhere.num_new(QUESTION)
        assert (await client.stats()).ledger_fallbacks == 0
    for cold in (second, third):
        assert cold.usage.prompt_tokens == first.usage.prompt_tokens
    # Both read all of it anew: prompts of the same ids have the same greedy answer, to the last id.
    assert again.history == elsewhere.history[: len(again.history)]
    await again.client.close()


async def test_a_ledger_of_another_tokenizer_is_counted_and_the_text_is_read(chat: Chat) -> None:
    await chat.ask("Hello", odd(1))
    before = (await chat.client.stats()).ledger_fallbacks
    chat.history = tuple(replace(segment, tokenizer="another") for segment in chat.history)
    done = await chat.ask(QUESTION, odd(2))
    assert (await chat.client.stats()).ledger_fallbacks == before + 1
    assert done.usage.prefilled_tokens > await chat.num_new(QUESTION)


@pytest.fixture(scope="module")
def thinking(run_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineProcess]:
    """An engine whose model has tokens for thinking, and whose template cuts it out of old answers."""
    folder = _thinking_model(tmp_path_factory.mktemp("thinking"))
    address = f"unix:{run_folder}/thinking/engine.sock"
    argv = [
        sys.executable,
        "-m",
        "inference",
        "--address",
        address,
        "--model",
        str(folder),
        "--embed-model",
        "",
        "--dtype",
        "fp32",
    ]
    argv += ["--threads", "1", "--kv-memory-mb", "16", "--probe-interval-s", "60"]
    engine = EngineProcess(address, argv, start_timeout_s=PATIENCE_S)
    asyncio.run(engine.start())
    yield engine
    asyncio.run(engine.stop())


@pytest.fixture
async def thinker(thinking: EngineProcess) -> AsyncIterator[Chat]:
    client = thinking.client()
    info = await client.info()
    assert info.template.strips_thinking
    assert not info.template.is_append_only
    chat = Chat(client, info.tokenizer)
    yield chat
    await client.forget(
        chat.owner
    )  # what is still to be read in idle time would be counted for the next test
    await client.close()


def thoughtful(seed: int) -> Sampling:
    """An answer that begins with some thinking, as a random model is made to give it.

    It soon ends its thinking, and what it has said it hardly says again: something comes behind on every processor.
    """
    never = tuple((token, -100.0) for token in CONTROL_IDS)
    soon = (*never, (END_THINK_ID, 8.0))
    return replace(odd(seed), logit_bias=soon, frequency_penalty=2.0, presence_penalty=2.0)


async def test_in_idle_time_the_history_is_read_as_the_next_turn_has_it(thinker: Chat) -> None:
    num_done = (await thinker.client.stats()).canonicalised
    await thinker.ask("Hello", thoughtful(5))
    for seed in (6, 7):
        _assert_thought(thinker)
        num_done += 1
        await _until(partial(_has_canonicalised, num_done), thinker.client)
        done = await thinker.ask(QUESTION, thoughtful(seed))
        assert done.usage.prefilled_tokens <= await thinker.num_new(QUESTION)


async def test_a_page_that_is_opened_warms_the_form_of_the_next_turn(thinker: Chat) -> None:
    """As after a restart: nothing is kept for this user, and the history comes from the database."""
    before = await thinker.client.stats()
    await thinker.ask("Hello", thoughtful(5))
    _assert_thought(thinker)
    idle = await _until(partial(_has_canonicalised, before.canonicalised + 1), thinker.client)
    elsewhere = replace(thinker, owner=replace(thinker.owner, user=str(uuid.uuid4())))
    assert await elsewhere.client.warm(elsewhere.history, elsewhere.owner)
    await _until(lambda stats: stats.prefilled_tokens > idle.prefilled_tokens, thinker.client)
    done = await elsewhere.ask(QUESTION, thoughtful(6))
    await elsewhere.client.forget(elsewhere.owner)
    assert done.usage.prefilled_tokens <= await elsewhere.num_new(QUESTION)


async def test_without_idle_time_what_both_forms_share_is_reused(thinker: Chat) -> None:
    other = replace(thinker, owner=Owner("tenant", "other", "busy"))
    busy = GenerateRequest(
        str(uuid.uuid4()),
        (Segment("user", "Hello"),),
        other.owner,
        Sampling(min_tokens=1500, max_tokens=1500),
    )
    await thinker.client.submit(busy)
    first = await thinker.ask("Hello", thoughtful(5))
    _assert_thought(thinker)
    second = await thinker.ask(QUESTION, thoughtful(6))
    await thinker.client.cancel(busy.generation_id)
    await thinker.client.forget(other.owner)
    # Both begin with the first turn's prompt; behind it the answer goes on without its thinking.
    assert second.usage.reused_tokens == first.usage.prompt_tokens


async def _until(is_so: Callable[[EngineStats], bool], client: EngineClient) -> EngineStats:
    async with asyncio.timeout(PATIENCE_S):
        while not is_so(stats := await client.stats()):
            await asyncio.sleep(0.01)
    return stats


def _has_canonicalised(number: int, stats: EngineStats) -> bool:
    return stats.canonicalised >= number


def _assert_thought(chat: Chat) -> None:
    thought, _, said = chat.history[-1].text.rpartition(END_THINK)
    assert thought.strip() and said.strip(), "the test needs an answer with thinking and something behind it"


def _thinking_model(folder: Path) -> Path:
    from inference.models.tiny import byte_level_tokenizer, write_tiny_model

    tokenizer = byte_level_tokenizer()
    tokenizer.add_tokens([THINK, END_THINK])
    assert tokenizer.token_to_id(END_THINK) == END_THINK_ID
    write_tiny_model(folder, vocab_size=tokenizer.get_vocab_size())
    tokenizer.save(str(folder / "tokenizer.json"))
    file = folder / "tokenizer_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"chat_template": QWEN_THINKING}))
    return folder


@asynccontextmanager
async def _another(engine: EngineProcess, folder: Path) -> AsyncIterator[EngineClient]:
    """A client of a second engine with the same model."""
    address = f"unix:{folder}/engine.sock"
    argv = [address if flag == engine.address else flag for flag in engine.argv]
    second = replace(engine, address=address, argv=argv, process=None)
    await second.start()
    client = second.client()
    try:
        yield client
    finally:
        await client.close()
        await second.stop()
