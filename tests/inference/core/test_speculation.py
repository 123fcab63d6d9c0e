"""Drafts change how many steps an answer takes, and nothing of the answer, its neighbours and its blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from inference.core import forward
from inference.core.books import Books
from inference.core.chunk import Chunk
from inference.core.drafts import MAX_DRAFT
from inference.core.messages import Admit, SamplingSpec, TokenOut
from inference.core.outcome import Outcome
from inference.core.speculation import MAX_SMALL_BATCH
from inference.types import Grammar
from tests.inference.core.driver import Driver, admit
from tests.inference.core.fakes import BLOCK_TOKENS, FakeCore, expected, make_fake_core, quoting_token
from tests.inference.core.well_read import drafts_from, texts_read

PROMPT = [4, 8, 15, 16, 23, 42, 7, 9, 11]
FAMILIES = ["llama", "llama-unfused", "qwen3", "gemma2"]
SAMPLINGS = [
    SamplingSpec(),
    SamplingSpec(temperature=0.9, top_p=0.9, seed=4),
    SamplingSpec(repetition_penalty=1.2, presence_penalty=0.4, frequency_penalty=0.3),
    SamplingSpec(logit_bias=[(17, 2.0), (40, -100.0)], logprobs=2),
    SamplingSpec(min_tokens=20, logprobs=0),
]


def quoting_core(speculate: str = "always", **fields: object) -> FakeCore:
    core = make_fake_core(speculate=speculate, **fields)  # type: ignore[arg-type]
    core.runner.model = quoting_token
    return core


def quoted(request: Admit) -> list[int]:
    return expected(request.prompt_ids, request.max_tokens, quoting_token)


def drafts_of(core: FakeCore) -> list[tuple[str, int]]:
    return [
        (chunk.sequence.id, len(chunk.draft))
        for batch in core.runner.batches
        for chunk in batch
        if chunk.draft
    ]


# --- the answer


def test_an_answer_that_repeats_itself_takes_fewer_steps() -> None:
    core, plain = quoting_core(), quoting_core("off")
    for one in (core, plain):
        request = admit(PROMPT, max_tokens=60)
        assert one.driver.generate(request) == quoted(request)
    stats = core.driver.loop.stats()
    assert stats.drafted_tokens > stats.accepted_tokens > 20
    assert stats.generated_tokens == plain.driver.loop.stats().generated_tokens == 60
    assert stats.steps == plain.driver.loop.stats().steps - stats.accepted_tokens


@pytest.mark.parametrize("family", FAMILIES)
def test_drafts_change_no_token_and_no_logprob(make_driver, random_prompt, family) -> None:
    prompts = [random_prompt(length) for length in (1, 16, 50, 130)]

    def answers(driver: Driver) -> list[list[TokenOut]]:
        requests = [
            admit(prompt, max_tokens=40, sampling=sampling) for prompt in prompts for sampling in SAMPLINGS
        ]
        driver.run(*requests)
        return [driver.tokens[request.id] for request in requests]

    with texts_read() as texts:
        plain = answers(make_driver(family, speculate="off"))
    with drafts_from(texts):
        driver = make_driver(family, speculate="always")
        drafted = answers(driver)
    stats = driver.loop.stats()
    assert stats.drafted_tokens > stats.accepted_tokens > 0.4 * stats.generated_tokens
    for ours, theirs in zip(drafted, plain, strict=True):
        assert [out.token for out in ours] == [out.token for out in theirs]
        assert [[key for key, _ in out.top] for out in ours] == [
            [key for key, _ in out.top] for out in theirs
        ]
        assert [out.logprob for out in ours] == pytest.approx([out.logprob for out in theirs], abs=1e-4)


@pytest.mark.parametrize("max_tokens", [1, 2, 3, 9, 10, 11])
def test_an_answer_ends_at_its_limit(max_tokens) -> None:
    core = quoting_core()
    request = admit([3, 5] * 8, max_tokens=max_tokens)
    core.runner.model = lambda history: history[-2]
    assert core.driver.generate(request) == ([3, 5] * 6)[:max_tokens]
    assert core.driver.end(request).reason == "length"
    assert core.driver.end(request).generated_tokens == max_tokens


def test_no_draft_reaches_past_the_window() -> None:
    core, lengths = quoting_core(max_context=32), []

    def model(history: Sequence[int]) -> int:
        lengths.append(len(history))
        return history[-2]

    core.runner.model = model
    assert core.driver.generate(admit([3, 5] * 8, max_tokens=100)) == [3, 5] * 8
    assert max(lengths) == 31


@pytest.mark.parametrize("place", range(1, 12))
def test_an_answer_ends_at_an_end_that_was_guessed(place) -> None:
    """Wherever in a draft the end stands: nothing behind it is said, counted or kept."""
    period = [3, 5, 8, 13, 21, 34, 2, 6, 1, 9, 7, 4]
    core = quoting_core()
    core.runner.model = lambda history: history[-12]
    request = admit(period * 2, max_tokens=40, stop_ids=[period[place]], conversation=b"talk")
    assert core.driver.generate(request) == period[: place + 1]
    end = core.driver.end(request)
    assert (end.reason, end.generated_tokens) == ("stop", place + 1)
    # As without drafts, the KV of the last token is not kept.
    again = admit([*period * 2, *period[: place + 1], 40], max_tokens=1, conversation=b"talk")
    core.driver.generate(again)
    assert core.driver.end(again).reused_head_tokens == 24 + place


def test_company_preemption_and_cancel_in_the_middle_change_nothing() -> None:
    core = quoting_core(num_blocks=30, max_batch=5, step_tokens=24)
    driver = core.driver
    requests = [admit([*PROMPT, n, *PROMPT], max_tokens=30, conversation=bytes([n])) for n in range(6)]
    cancelled = requests[2]
    for request in requests:
        driver.step(request)
    while driver.loop.has_work:
        if len(driver.ids(cancelled)) > 10 and cancelled.id not in driver.finished:
            driver.cancel(cancelled, keep_tokens=len(driver.ids(cancelled)))
        driver.step()
    for request in requests:
        ids = driver.ids(request)
        assert ids == quoted(request)[: len(ids)]
        assert driver.end(request).generated_tokens == len(ids)
        assert len(ids) == 30 or request is cancelled
    stats = driver.loop.stats()
    assert (stats.blocks_used, stats.preemptions > 0, stats.accepted_tokens > 0) == (0, True, True)


def test_guesses_take_no_block_that_somebody_needs() -> None:
    """The pool holds both answers exactly. The texts turn where long drafts are tried: what these would have needed is
    left, and nobody goes back for their sake."""
    core, turn, end = quoting_core(num_blocks=12), 19, 49

    def model(history: Sequence[int]) -> int:
        if len(history) < turn:
            return history[-8]
        return len(history) + 7 if len(history) < 23 else end

    core.runner.model = model
    requests = [admit([n, *PROMPT[:7]], max_tokens=100, stop_ids=[end]) for n in (1, 2)]
    core.driver.run(*requests)
    stats = core.driver.loop.stats()
    assert stats.preemptions == 0
    assert stats.drafted_tokens > stats.accepted_tokens > 0
    for request in requests:
        assert core.driver.end(request).reason == "stop"
        assert core.driver.ids(request) == expected(request.prompt_ids, 16, model)


def test_broken_numbers_behind_a_wrong_guess_end_their_sequence_and_are_wiped() -> None:
    """They lie in its blocks, where a mask does not keep them from spreading."""
    core = quoting_core()
    poison, neighbour = admit(PROMPT * 2, max_tokens=40), admit(PROMPT, max_tokens=40)
    core.runner.broken_from[poison.id] = len(PROMPT) * 2 + 3
    core.driver.run(poison, neighbour)
    assert core.driver.end(poison).reason == "failed"
    assert core.driver.ids(neighbour) == quoted(neighbour)
    again = admit(PROMPT * 2, max_tokens=40)
    assert core.driver.generate(again) == quoted(again)


def test_a_grammar_is_never_drafted_for() -> None:
    """What it allows is known for the next token only."""
    core = quoting_core()
    sampling = SamplingSpec(grammar=Grammar("json_object"), speculate=True)
    request = admit(PROMPT * 3, max_tokens=4, sampling=sampling)
    core.driver.run(request)
    assert core.driver.loop.stats().drafted_tokens == 0


# --- who drafts


@pytest.mark.parametrize(
    ("mode", "wish", "num_sequences", "drafts"),
    [
        ("auto", None, MAX_SMALL_BATCH, True),
        ("auto", None, MAX_SMALL_BATCH + 1, False),
        ("auto", True, MAX_SMALL_BATCH + 1, True),
        ("auto", False, 1, False),
        ("always", None, MAX_SMALL_BATCH + 1, True),
        ("always", False, 1, False),
        ("off", True, 1, False),
    ],
)
def test_who_drafts(mode, wish, num_sequences, drafts) -> None:
    core = quoting_core(mode, num_blocks=200)
    sampling = SamplingSpec(speculate=wish)
    requests = [admit([n, *PROMPT], max_tokens=40, sampling=sampling) for n in range(num_sequences)]
    core.driver.run(*requests)
    assert (core.driver.loop.stats().drafted_tokens > 0) == drafts
    assert [core.driver.ids(request) for request in requests] == [quoted(request) for request in requests]


def test_where_nothing_is_right_little_is_tried() -> None:
    """In a text in which every pair of tokens has been said, and something else follows each time."""
    auto, always = quoting_core("auto"), quoting_core("always")
    for core in (auto, always):
        core.runner.model = lambda history: (len(history) // 3) % 2 if len(history) % 3 else len(history) % 50
        core.driver.generate(admit([0, 0, 1, 1, 0, 1], max_tokens=200))
    assert 0 < len(drafts_of(auto)) < len(drafts_of(always)) / 3
    assert max(length for _, length in drafts_of(always)) == MAX_DRAFT


def test_shares_count_what_was_got() -> None:
    """A token that was guessed costs its user what one of a step of its own does; a wrong guess costs nothing."""
    served = []
    for speculate in ("off", "always"):
        core = quoting_core(speculate)
        request = admit(PROMPT, max_tokens=40)
        core.driver.step(request)
        sequence = core.scheduler.running[0]
        core.driver.run()
        served.append(core.scheduler._shares.served(sequence))
    assert served[0] == served[1]


# --- plausible mistakes


def problem() -> str:
    """What is wrong with a long answer, the books of its blocks, or what others will find in them."""
    core, request = quoting_core(), admit(PROMPT, max_tokens=60)
    try:
        ids = core.driver.generate(request)
    except AssertionError as error:
        return f"the books: {error}"
    if ids != quoted(request):
        return "the answer"
    prefix = core.kv.prefix
    for block in prefix.blocks_of(request.salt):
        written = tuple(core.runner.slots[block, place] for place in range(BLOCK_TOKENS))
        if written != prefix.published(block).identity.token_ids:
            return "a block"
    return ""


def test_nothing_is_wrong() -> None:
    assert problem() == ""


def test_one_guess_too_many_is_noticed(monkeypatch) -> None:
    verified = forward._verified

    def generous(draft: tuple[int, ...], outcomes: list[Outcome]) -> Outcome:
        right = verified(draft, outcomes)
        return replace(right, more=tuple(outcomes[1 : len(right.more) + 2]))

    monkeypatch.setattr(forward, "_verified", generous)
    assert problem() == "the answer"


def test_wrong_guesses_that_count_as_computed_are_noticed(monkeypatch) -> None:
    judge = Books._judge

    def forgetful(self: Books, chunk: Chunk, num_accepted: int) -> None:
        judge(self, chunk, num_accepted)
        chunk.sequence.advance(len(chunk.draft) - num_accepted)

    monkeypatch.setattr(Books, "_judge", forgetful)
    assert problem()


def test_a_block_that_is_registered_with_a_wrong_guess_is_noticed(monkeypatch) -> None:
    judge = Books._judge

    def hasty(self: Books, chunk: Chunk, num_accepted: int) -> None:
        """Publish what the forward has written, before it is known what of it is right."""
        sequence = chunk.sequence
        before = sequence.token_ids, sequence.num_computed
        sequence.token_ids = [*sequence.token_ids, *chunk.draft]
        sequence.num_computed += chunk.num_tokens
        self._kv.publish(sequence)
        sequence.token_ids, sequence.num_computed = before
        judge(self, chunk, num_accepted)

    monkeypatch.setattr(Books, "_judge", hasty)
    assert problem() == "a block"
