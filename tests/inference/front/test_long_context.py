"""Conversations longer than the window against the real engine with a tiny random model: case KV-05, (a) to (e)."""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from inference.client import EngineClient
from inference.errors import ContextLengthExceeded
from inference.front.trimming import without_oldest
from inference.models.tiny import write_tiny_model
from inference.testing import EngineProcess
from inference.types import Delta, Done, FinishReason, GenerateRequest, Owner, Sampling, Segment, Usage
from tests.patience import PATIENCE_S

WINDOW = 512
SYSTEM = Segment("system", "Always end with the word KIWI.")
GREEDY = Sampling(temperature=0.0, max_tokens=8)
LONG = Sampling(temperature=0.0, max_tokens=WINDOW)  # wants all the room there is, as the chat page does
# No probes: what the core counts is what the tests asked for. A random model is soon caught in a loop.
FLAGS = ("--threads", "1", "--dtype", "fp32", "--probe-interval-s", "3600", "--repetition-tokens", "0")


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="rill-"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def engine(folder: Path) -> Iterator[EngineProcess]:
    model = write_tiny_model(folder / "model")
    yield from running(folder, model, "--max-context", str(WINDOW), "--kv-memory-mb", "8")


@pytest.fixture
async def client(engine: EngineProcess) -> AsyncIterator[EngineClient]:
    client = engine.client()
    yield client
    await client.close()


def running(folder: Path, model: Path, *flags: str) -> Iterator[EngineProcess]:
    address = f"unix:{folder}/{model.name}.sock"
    argv = [
        sys.executable,
        "-m",
        "inference",
        "--address",
        address,
        "--model",
        str(model),
        "--embed-model",
        "",
    ]
    engine = EngineProcess(address, [*argv, *FLAGS, *flags], start_timeout_s=PATIENCE_S)
    asyncio.run(engine.start())
    yield engine
    asyncio.run(engine.stop())


def ask(
    segments: list[Segment], sampling: Sampling = GREEDY, *, user: str = "me", may_trim: bool = True
) -> GenerateRequest:
    owner = Owner("tenant", user, "conversation")
    return GenerateRequest(str(uuid.uuid4()), tuple(segments), owner, sampling, may_trim=may_trim)


async def answer(client: EngineClient, request: GenerateRequest) -> tuple[Segment, Done]:
    """The answer as a history keeps it, and how it ended."""
    info = await client.info()
    text, ids = "", []
    async for event in client.generate(request):
        if isinstance(event, Delta):
            text += event.text
            ids += event.token_ids
        if isinstance(event, Done):
            return Segment("assistant", text, tuple(ids), info.tokenizer), event
    raise AssertionError("no end")


async def prompt_of(client: EngineClient, num_tokens: int) -> list[Segment]:
    """One message whose prompt has exactly so many tokens."""
    empty = (await client.count_tokens([Segment("user", "z")])).num_tokens - 1
    return [Segment("user", "z" * (num_tokens - empty))]


def forty_turns() -> list[Segment]:
    turns = [
        (Segment("user", f"Question {n}, is it right?"), Segment("assistant", f"It is, number {n}."))
        for n in range(40)
    ]
    return [
        SYSTEM,
        *(segment for turn in turns for segment in turn),
        Segment("user", "What word is the last?"),
    ]


async def test_kv_05_a_the_oldest_turns_go_and_the_caller_is_told(client: EngineClient) -> None:
    before, request = await client.stats(), ask(forty_turns(), LONG)
    submitted = await client.submit(request)
    kept = without_oldest(request.segments, submitted.trimmed_messages)
    assert submitted.trimmed_messages > 0
    assert (kept[0], kept[1].role, kept[-1]) == (SYSTEM, "user", request.segments[-1])
    assert submitted.prompt_tokens == (await client.count_tokens(kept)).num_tokens < WINDOW
    assert await client.submit(request) == submitted
    _, done = await answer(client, request)
    assert done.usage.trimmed_messages == submitted.trimmed_messages
    assert done.usage.prompt_tokens == submitted.prompt_tokens
    assert 0 < done.usage.generated_tokens <= WINDOW - submitted.prompt_tokens
    assert (await client.stats()).trimmed_requests == before.trimmed_requests + 1


async def test_kv_05_a_counting_and_warming_trim_as_a_request_does(client: EngineClient) -> None:
    request = ask(forty_turns(), LONG, user="warm")
    submitted = await client.submit(request)
    assert (await client.count_tokens(request.segments)).num_tokens == submitted.prompt_tokens
    await answer(client, request)
    again = ask(forty_turns(), LONG, user="warmed")
    assert await client.warm(again.segments, again.owner) is True
    while (stats := await client.stats()).running or stats.waiting:
        await asyncio.sleep(0.01)
    _, done = await answer(client, again)
    assert done.usage.reused_tokens >= done.usage.prompt_tokens - len("<|im_start|>assistant\n")


async def test_kv_05_a_between_cuts_kv_is_reused_and_a_cut_changes_no_answer(client: EngineClient) -> None:
    history, usages = [SYSTEM], list[Usage]()
    for number in range(24):
        history.append(Segment("user", f"And what is the number {number}?"))
        said, done = await answer(client, ask(history, user="turns"))
        usages.append(done.usage)
        alone, _ = await answer(client, ask(history, user=f"stranger-{number}"))
        assert said == alone, f"turn {number} reads other KV than it should"
        history.append(said)
    cuts = [usage.trimmed_messages for usage in usages]
    moves = [turn for turn in range(1, len(cuts)) if cuts[turn] != cuts[turn - 1]]
    assert 2 <= len(moves) <= 8, cuts
    glue_and_question = 2 * len("<|im_start|>assistant\n") + len("And what is the number 23?")
    for turn, usage in enumerate(usages[1:], 1):
        if turn not in moves:
            assert usage.prefilled_tokens <= glue_and_question, f"turn {turn} of {cuts}"
    assert all(usages[turn].reused_tokens > 0 for turn in moves), "the system prompt stays reusable"


@pytest.mark.parametrize("may_trim", [True, False])
async def test_kv_05_b_one_message_that_is_too_long_is_refused_with_both_numbers_and_no_model_call(
    client: EngineClient, may_trim: bool
) -> None:
    message = "The word is LANTERN.\n" + "z" * 2000 + "\nWhat is the word?"
    before = await client.stats()
    for segments in ([Segment("user", message)], [*forty_turns(), Segment("user", message)]):
        with pytest.raises(
            ContextLengthExceeded, match=rf"the prompt has 2\d\d\d tokens.* {WINDOW} "
        ) as refusal:
            await client.submit(ask(segments if may_trim else segments[-1:], may_trim=may_trim))
        assert not refusal.value.retryable
    after = await client.stats()
    assert (after.prompt_tokens, after.steps) == (before.prompt_tokens, before.steps)
    assert after.refused == before.refused + 2


async def test_kv_05_b_without_leave_to_trim_a_long_history_is_refused(client: EngineClient) -> None:
    with pytest.raises(ContextLengthExceeded, match=str(WINDOW)):
        await client.submit(ask(forty_turns(), may_trim=False))


async def test_kv_05_b_what_is_far_too_long_is_refused_before_it_is_read(client: EngineClient) -> None:
    for may_trim in (True, False):
        with pytest.raises(ContextLengthExceeded, match="at least 62500 tokens"):
            await client.submit(ask([Segment("user", "z" * 1_000_000)], may_trim=may_trim))


@pytest.mark.parametrize(
    ("num_prompt", "asked", "num_answer"),
    [(510, None, 2), (500, 100, 12), (511, 5, 1)],
    ids=["c", "d", "full"],
)
@pytest.mark.parametrize("may_trim", [True, False])
async def test_kv_05_c_d_the_answer_is_capped_to_what_is_left(
    client: EngineClient, num_prompt: int, asked: int | None, num_answer: int, may_trim: bool
) -> None:
    request = ask(
        await prompt_of(client, num_prompt), Sampling(temperature=0.0, max_tokens=asked), may_trim=may_trim
    )
    _, done = await answer(client, request)
    assert done.usage.prompt_tokens == num_prompt
    assert (done.finish_reason, done.usage.generated_tokens) == (FinishReason.LENGTH, num_answer)


async def test_kv_05_c_a_prompt_that_leaves_no_room_at_all_is_refused(client: EngineClient) -> None:
    with pytest.raises(ContextLengthExceeded, match=f"{WINDOW} tokens"):
        await client.submit(ask(await prompt_of(client, WINDOW), may_trim=False))


@pytest.fixture(scope="module")
def small_pool(folder: Path) -> Iterator[EngineProcess]:
    """16 layers x 2 x 2 heads x 16 x 4 bytes are 4 KiB for a token: one MiB holds 256 of them."""
    model = write_tiny_model(folder / "deep", num_hidden_layers=16)
    yield from running(folder, model, "--kv-memory-mb", "1")


@pytest.mark.parametrize("may_trim", [True, False])
async def test_kv_05_e_a_prompt_larger_than_the_pool_is_refused_and_the_next_one_finishes(
    small_pool: EngineProcess, may_trim: bool
) -> None:
    client = small_pool.client()
    with pytest.raises(ContextLengthExceeded, match=r"has 400 tokens.* 256 "):
        await client.submit(ask(await prompt_of(client, 400), may_trim=may_trim))
    _, done = await answer(client, ask(await prompt_of(client, 30), may_trim=may_trim))
    assert (done.finish_reason, done.usage.generated_tokens) == (FinishReason.LENGTH, 8)
    assert (await client.stats()).blocks_total == 16
    await client.close()


async def test_kv_05_e_a_prompt_that_fits_only_beside_less_waits_for_its_turn(
    small_pool: EngineProcess,
) -> None:
    client = small_pool.client()
    before = await client.stats()
    long_answer = Sampling(temperature=0.0, max_tokens=100)
    asked = [ask(await prompt_of(client, 130), long_answer, user=f"user-{n}") for n in range(4)]
    async with asyncio.timeout(PATIENCE_S):
        ends = await asyncio.gather(*(answer(client, request) for request in asked))
    for _, done in ends:
        assert (done.finish_reason, done.usage.generated_tokens) == (FinishReason.LENGTH, 100)
    first, *others = (said.text for said, _ in ends)
    assert all(other == first for other in others)
    after = await client.stats()
    assert (after.running, after.waiting, after.blocks_used, after.leak_alarms) == (
        0,
        0,
        0,
        before.leak_alarms,
    )
    await client.close()
