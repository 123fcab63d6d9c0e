"""What every engine promises its callers, whatever computes the tokens."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from inference.choices import choice_of
from inference.client import EngineClient
from inference.errors import (
    ContextLengthExceeded,
    GenerationUnknown,
    InvalidRequest,
    QueueFull,
)
from inference.types import (
    Delta,
    Done,
    EngineStats,
    Event,
    FinishReason,
    GenerateRequest,
    Owner,
    Prefill,
    Queued,
    Sampling,
    Segment,
)
from tests.inference.contract.conftest import OWNER, Target, ask, wait_until_idle
from tests.patience import PATIENCE_S


async def collect(events: AsyncIterator[Event]) -> list[Event]:
    return [event async for event in events]


def logged(events: list[Event]) -> list[Delta | Done]:
    return [event for event in events if isinstance(event, Delta | Done)]


def text_of(events: list[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, Delta))


def ids_of(events: list[Event]) -> tuple[int, ...]:
    return tuple(token for event in events if isinstance(event, Delta) for token in event.token_ids)


def ending(events: list[Event]) -> Done:
    assert isinstance(events[-1], Done)
    return events[-1]


async def first_delta(events: AsyncIterator[Event]) -> Delta:
    async for event in events:
        if isinstance(event, Delta):
            return event
    raise AssertionError("no delta")


async def test_logged_events_are_numbered_from_one_and_end_in_done(
    target: Target, client: EngineClient
) -> None:
    events = await collect(client.generate(target.request(20)))
    assert [event.seq for event in logged(events)] == list(range(1, len(logged(events)) + 1))
    assert all(event.text for event in events if isinstance(event, Delta))
    assert ending(events).finish_reason is FinishReason.LENGTH
    assert not any(isinstance(event, Done) for event in events[:-1])


async def test_usage_counts_the_prompt_by_source_and_the_answer(target: Target, client: EngineClient) -> None:
    request = target.request(20)
    submitted = await client.submit(request)
    usage = ending(await collect(client.attach(request.generation_id))).usage
    assert usage.prompt_tokens == submitted.prompt_tokens > 0
    assert usage.reused_tokens + usage.prefilled_tokens == usage.prompt_tokens
    assert 0 < usage.generated_tokens <= 20


async def test_attaching_after_any_event_gives_exactly_the_rest(target: Target, client: EngineClient) -> None:
    request = target.request(12)
    whole = logged(await collect(client.generate(request)))
    for after in range(len(whole)):
        assert await collect(client.attach(request.generation_id, after)) == whole[after:]


async def test_an_answer_that_goes_on_is_the_one_that_it_would_have_been(
    target: Target, client: EngineClient
) -> None:
    whole = target.request(24, delay_ms=0)
    at_once = logged(await collect(client.generate(whole)))
    tokenizer = (await client.info()).tokenizer
    for num_first in (1, 9, 23):
        first = replace(whole, generation_id=str(uuid.uuid4()), sampling=Sampling(0.0, max_tokens=num_first))
        head = await collect(client.generate(first))
        assert ending(head).finish_reason is FinishReason.LENGTH
        begun = Segment("assistant", text_of(head), ids_of(head), tokenizer)
        rest = replace(
            whole,
            generation_id=str(uuid.uuid4()),
            segments=(*whole.segments, begun),
            sampling=Sampling(0.0, max_tokens=24 - num_first),
            continues_answer=True,
            may_trim=num_first == 9,
        )
        tail = await collect(client.generate(rest))
        assert ids_of(head) + ids_of(tail) == ids_of(at_once)
        assert text_of(head) + text_of(tail) == text_of(at_once)
        assert ending(tail).usage.prompt_tokens == ending(head).usage.prompt_tokens + num_first
        by_text = replace(
            rest, generation_id=str(uuid.uuid4()), segments=(*whole.segments, Segment("assistant", "x"))
        )
        assert isinstance((await collect(client.generate(by_text)))[-1], Done)
    with pytest.raises(InvalidRequest):
        await client.submit(replace(whole, generation_id=str(uuid.uuid4()), continues_answer=True))


async def test_two_followers_of_one_client_see_the_same(target: Target, client: EngineClient) -> None:
    request = target.request(20)
    await client.submit(request)
    first, second = await asyncio.gather(
        collect(client.attach(request.generation_id)), collect(client.attach(request.generation_id, 3))
    )
    assert logged(first)[3:] == logged(second)


async def test_a_lost_client_does_not_end_its_generation(target: Target, client: EngineClient) -> None:
    request = target.request(60)
    lost = target.engine.client()
    seen = await first_delta(lost.generate(request))
    await lost.close()
    events = await collect(client.attach(request.generation_id))
    assert events[0] == seen
    assert ending(events).finish_reason is FinishReason.LENGTH


async def test_cancel_ends_a_running_generation_and_is_idempotent(
    target: Target, client: EngineClient
) -> None:
    request = target.request(1500)
    events = client.generate(request)
    head = await first_delta(events)
    assert await client.cancel(request.generation_id, "stop button") is True
    assert await client.cancel(request.generation_id) is False
    rest = await collect(events)
    assert ending(rest).finish_reason is FinishReason.CANCELLED
    assert await client.cancel(request.generation_id) is False
    assert await collect(client.attach(request.generation_id)) == [head, *logged(rest)]


async def test_cancelling_what_is_unknown_is_harmless(client: EngineClient) -> None:
    assert await client.cancel("8b9f2c4e-0000-4000-8000-000000000000") is False


async def test_queued_generations_hear_their_place_and_can_be_cancelled(
    target: Target, client: EngineClient
) -> None:
    running = [target.request(1500), target.request(1500)]
    heads = [client.generate(request) for request in running]
    for events in heads:
        await first_delta(events)
    queued = target.request(5)
    events = client.generate(queued)
    first = await anext(events)
    assert isinstance(first, Queued)
    assert first.position == 0
    await client.cancel(queued.generation_id)
    assert ending(await collect(events)).finish_reason is FinishReason.CANCELLED
    for request in running:
        await client.cancel(request.generation_id)


async def test_a_full_queue_refuses_at_once_with_a_time_to_come_back(
    target: Target, client: EngineClient
) -> None:
    requests = [target.request(1500) for _ in range(5)]
    heads = [client.generate(request) for request in requests[:2]]
    for events in heads:
        await first_delta(events)
    assert [(await client.submit(request)).num_waiting for request in requests[2:]] == [1, 2, 3]
    refused = (await client.stats()).refused
    with pytest.raises(QueueFull) as refusal:
        await client.submit(target.request(1))
    assert refusal.value.retry_after_s is not None
    assert refusal.value.retry_after_s > 0
    assert (await client.stats()).refused == refused + 1
    for request in requests:
        await client.cancel(request.generation_id)


async def test_submitting_an_id_twice_starts_one_generation(target: Target, client: EngineClient) -> None:
    request = target.request(10)
    first, second = await asyncio.gather(client.submit(request), client.submit(request))
    assert first == second
    events = await collect(client.attach(request.generation_id))
    assert await client.submit(request) == first
    assert await collect(client.attach(request.generation_id)) == logged(events)


async def test_a_generation_past_its_deadline_fails_with_what_it_has(
    target: Target, client: EngineClient
) -> None:
    request = replace(target.request(1900, delay_ms=20), deadline_s=0.4)
    events = await collect(client.generate(request))
    assert ending(events).finish_reason is FinishReason.FAILED
    assert ending(events).error_code == "deadline_exceeded"


async def test_attaching_to_what_is_unknown_says_so(client: EngineClient) -> None:
    with pytest.raises(GenerationUnknown):
        await collect(client.attach("8b9f2c4e-0000-4000-8000-000000000000"))


@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(temperature=float("nan")),
        Sampling(temperature=float("inf")),
        Sampling(temperature=-1),
        Sampling(top_p=0.0),
        Sampling(top_p=1.5),
        Sampling(top_k=-1),
        Sampling(max_tokens=0),
        Sampling(repetition_penalty=0.0),
        Sampling(stop=("",)),
        Sampling(stop=("x",) * 17),
    ],
)
async def test_impossible_sampling_is_refused(client: EngineClient, sampling: Sampling) -> None:
    with pytest.raises(InvalidRequest):
        await client.submit(ask("Hello", sampling))


@pytest.mark.parametrize(
    "segments",
    [(), (Segment("emperor", "Hello"),), (Segment("user", "lone \ud83d surrogate"),)],
    ids=["empty history", "unknown role", "lone surrogate"],
)
async def test_an_impossible_history_is_refused(client: EngineClient, segments: tuple[Segment, ...]) -> None:
    with pytest.raises(InvalidRequest):
        await client.submit(replace(ask("Hello"), segments=segments))


async def test_a_prompt_that_can_never_fit_is_refused_with_both_numbers(client: EngineClient) -> None:
    longest = (await client.info()).max_context
    with pytest.raises(ContextLengthExceeded, match=str(longest)) as refusal:
        await client.submit(ask("yes " * longest))
    assert refusal.value.retryable is False


async def test_the_answer_is_capped_by_what_is_left_of_the_window(
    target: Target, client: EngineClient
) -> None:
    longest = (await client.info()).max_context
    room = 30
    filled = target.word * (longest // 2)
    empty_prompt = (await client.count_tokens([Segment("user", filled)])).num_tokens
    padding = longest - room - empty_prompt
    request = ask(filled + target.word * padding, Sampling(temperature=0.0, max_tokens=10 * room))
    submitted = await client.submit(request)
    events = await collect(client.attach(request.generation_id))
    assert submitted.prompt_tokens == longest - room
    assert ending(events).usage.generated_tokens <= room


async def test_the_second_turn_reuses_the_first(target: Target, client: EngineClient) -> None:
    info = await client.info()
    owner = replace(OWNER, conversation="conversation-1")
    first = replace(
        ask("Hello world " * target.block_tokens, Sampling(temperature=0.0, max_tokens=10)), owner=owner
    )
    events = await collect(client.generate(first))
    ids = tuple(token for event in events if isinstance(event, Delta) for token in event.token_ids)
    history = (
        *first.segments,
        Segment("assistant", text_of(events), ids, info.tokenizer),
        Segment("user", "And you?"),
    )
    second = replace(ask("", Sampling(temperature=0.0, max_tokens=5)), owner=owner, segments=history)
    usage = ending(await collect(client.generate(second))).usage
    known = ending(events).usage.prompt_tokens - 1
    assert usage.reused_tokens >= known - known % target.block_tokens > 0


async def test_another_user_reuses_nothing(client: EngineClient) -> None:
    request = replace(
        ask("A long question that only I asked " * 4, Sampling(max_tokens=2)), owner=Owner("t", "me", "c")
    )
    await collect(client.generate(request))
    foreign = replace(
        ask(""), segments=request.segments, owner=Owner("t", "you", "c"), sampling=request.sampling
    )
    assert ending(await collect(client.generate(foreign))).usage.reused_tokens == 0


async def test_forgetting_a_conversation_frees_the_blocks_that_are_kept_here(
    target: Target, client: EngineClient
) -> None:
    owner = replace(OWNER, conversation="to-forget")
    await collect(client.generate(replace(ask("Remember this " * 10, Sampling(max_tokens=5)), owner=owner)))
    assert (await client.forget(owner) > 0) is target.keeps_kv
    assert await client.forget(owner) == 0


async def test_forgetting_drops_the_logs_of_the_conversation_or_of_the_user_and_nobody_elses(
    client: EngineClient,
) -> None:
    me = Owner("t", "to-forget")
    owners = (
        replace(me, conversation="one"),
        replace(me, conversation="two"),
        me,
        Owner("t", "other", "one"),
    )
    asked = [replace(ask("Hi", Sampling(max_tokens=2)), owner=owner) for owner in owners]
    for request in asked:
        await collect(client.generate(request))

    async def known() -> list[bool]:
        return [await is_known(client, request.generation_id) for request in asked]

    await client.forget(owners[0])
    assert await known() == [False, True, True, True]
    await client.forget(me)
    assert await known() == [False, False, False, True]


async def is_known(client: EngineClient, generation_id: str) -> bool:
    try:
        return bool([event async for event in client.attach(generation_id)])
    except GenerationUnknown:
        return False


async def test_equal_texts_have_equal_vectors_of_length_one(client: EngineClient) -> None:
    info = await client.info()
    result = await client.embed(["Hello world", "What is the time?", "Hello world"])
    assert result.embedder == info.embedder
    assert [len(vector) for vector in result.vectors] == [info.embedding_dim] * 3
    first, other, again = result.vectors
    assert sum(value * value for value in first) == pytest.approx(1, abs=1e-4)
    assert sum(a * b for a, b in zip(first, again, strict=True)) == pytest.approx(1, abs=1e-4)
    assert sum(a * b for a, b in zip(first, other, strict=True)) < 0.999


async def test_a_pair_has_a_score_between_0_and_1_whatever_its_company(client: EngineClient) -> None:
    pairs = [("Hello world", "Hello world"), ("What is the time?", "the and of " * 300), ("", "<|im_end|>")]
    alone = [(await client.verify([pair]))[0] for pair in pairs]
    together = await client.verify(pairs[::-1])
    assert together[::-1] == pytest.approx(alone, abs=1e-4)
    assert all(0 <= score <= 1 for score in alone)
    assert (await client.info()).verifier


async def test_too_many_pairs_are_refused(client: EngineClient) -> None:
    with pytest.raises(InvalidRequest):
        await client.verify([("x", "y")] * 513)


async def test_many_texts_are_several_calls_because_an_engine_refuses_too_many_at_once(
    client: EngineClient,
) -> None:
    assert len((await client.embed(["x"] * 513)).vectors) == 513
    with pytest.raises(InvalidRequest):
        await client._embed(["x"] * 513)
    with pytest.raises(InvalidRequest):
        await client.embed([])


async def test_a_history_and_a_draft_are_read_ahead_but_nothing_without_a_conversation(
    client: EngineClient,
) -> None:
    owner = replace(OWNER, conversation="to-warm")
    history = [Segment("user", "Hello"), Segment("assistant", "Good morning.")]
    assert await client.warm(history, owner) is True
    assert await client.warm([*history, Segment("user", "What is the time in")], owner) is True
    assert await client.warm(history, replace(owner, conversation="")) is False


async def choices(client: EngineClient, request: GenerateRequest, num_choices: int) -> list[list[Event]]:
    answers: list[list[Event]] = [[] for _ in range(num_choices)]
    async for index, event in client.generate_choices(request, num_choices):
        answers[index].append(event)
    return answers


async def test_choice_0_is_what_the_request_alone_would_be_and_all_can_be_had_again(
    target: Target, client: EngineClient
) -> None:
    request = target.request(12, temperature=1.5, seed=11)
    alone = replace(request, generation_id=str(uuid.uuid4()))
    answers = await choices(client, request, 3)
    assert [ending(events).finish_reason for events in answers] == [FinishReason.LENGTH] * 3
    assert text_of(answers[0]) == text_of(await collect(client.generate(alone)))
    again = await choices(client, replace(request, generation_id=str(uuid.uuid4())), 2)
    assert [text_of(events) for events in again] == [text_of(events) for events in answers[:2]]
    for index, events in enumerate(answers):
        choice = choice_of(request, index)
        assert await collect(client.attach(choice.generation_id)) == logged(events)


async def test_one_refused_choice_cancels_the_others(target: Target, client: EngineClient) -> None:
    with pytest.raises(QueueFull):
        await choices(client, target.request(1500), 7)
    async with asyncio.timeout(PATIENCE_S):
        while (stats := await client.stats()).running or stats.waiting:
            await asyncio.sleep(0.01)


async def test_an_impossible_number_of_choices_is_refused(target: Target, client: EngineClient) -> None:
    with pytest.raises(InvalidRequest):
        await choices(client, target.request(1), 0)


async def test_idle_blocks_add_up_and_nothing_is_used(target: Target, client: EngineClient) -> None:
    await collect(client.generate(target.request(5)))
    stats = await wait_until_idle(client)
    assert stats.is_ready
    assert stats.blocks_used == 0
    assert stats.blocks_free + stats.blocks_cached == stats.blocks_total
    assert stats.generated_tokens > 0


async def test_an_answer_longer_than_one_pack_is_replayed_whole(target: Target, client: EngineClient) -> None:
    request = target.request(1800, delay_ms=0)
    events = await collect(client.generate(request))
    assert await collect(client.attach(request.generation_id)) == logged(events)
    progress = [event for event in events if isinstance(event, Prefill | Queued)]
    assert all(event.seq == 0 for event in progress)


async def test_a_killed_core_ends_answers_as_failed_and_the_next_request_works(
    target: Target, client: EngineClient
) -> None:
    request = target.request(1500)
    waiting = [target.request(1500), target.request(1500)]
    events = client.generate(request)
    head = await first_delta(events)
    others = [client.generate(other) for other in waiting]
    for other in waiting:
        await client.submit(other)
    restarts = (await client.stats()).core_restarts
    before = await client.stats()
    target.engine.kill_core()
    rest = await collect(events)
    assert ending(rest).finish_reason is FinishReason.FAILED
    assert ending(rest).error_code == "engine_restarted"
    assert await collect(client.attach(request.generation_id)) == [head, *logged(rest)]
    for other in others:
        assert ending(await collect(other)).error_code == "engine_restarted"
    await target.engine.wait_until(is_ready=True)
    assert ending(await collect(client.generate(target.request(3)))).finish_reason is FinishReason.LENGTH
    after = await client.stats()
    assert after.core_restarts == restarts + 1
    assert after.generated_tokens > before.generated_tokens


async def test_the_usage_of_all_answers_adds_up_to_what_the_engine_counted(
    target: Target, client: EngineClient
) -> None:
    """Whole, stopped, queued and cut by a stop string; what nobody asked for is told apart."""
    before = await settled(client)
    long = [target.request(1500) for _ in range(2)]
    running = [client.generate(request) for request in long]
    for events in running:
        await first_delta(events)
    queued = target.request(5)
    waiting = asyncio.create_task(collect(client.generate(queued)))
    cut = target.request(30, stop=("a", "e"))
    short = [target.request(7), replace(target.request(7), owner=Owner("tenant", "user", "talk")), cut]
    await client.cancel(long[0].generation_id)
    await client.cancel(queued.generation_id)
    ends = [ending(await waiting), *[ending(await collect(client.generate(request))) for request in short]]
    await client.cancel(long[1].generation_id)
    ends += [ending(await collect(events)) for events in running]
    after = await settled(client)

    def asked_for(name: str, *sources: str) -> float:
        grown = sum(getattr(after, source) - getattr(before, source) for source in sources or (name,))
        background = f"background_{name}"
        return float(grown - (getattr(after, background) - getattr(before, background)))

    reused = [f"reused_{source}_tokens" for source in ("head", "prefix", "shared", "disk")]
    for name in ("prompt_tokens", "prefilled_tokens", "device_seconds"):
        assert asked_for(name) == pytest.approx(sum(getattr(end.usage, name) for end in ends)), name
    made = sum(end.usage.generated_tokens + end.usage.unseen_tokens for end in ends)
    assert asked_for("generated_tokens") == made
    assert asked_for("reused_tokens", *reused) == sum(end.usage.reused_tokens for end in ends)
    assert (asked_for("device_seconds") > 0) == target.keeps_kv


async def settled(client: EngineClient) -> EngineStats:
    """Numbers that no probe is in the middle of: a gateway tells the upstream's batch and not its own."""
    stats = await wait_until_idle(client)
    while True:
        await asyncio.sleep(0.05)
        later = await wait_until_idle(client)
        if (later.prompt_tokens, later.generated_tokens) == (stats.prompt_tokens, stats.generated_tokens):
            return later
        stats = later
