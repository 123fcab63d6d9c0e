from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.core.messages import FinishedOut, TokenOut
from inference.front.generation import CANCELLED, RESTARTED, Generation, GenerationLimits, State
from inference.testing.tokenizer import END_OF_TURN, ByteTokenizer, tokens_of

DECODER = ByteTokenizer()


@dataclass
class Clock:
    now: float = 100.0

    def __call__(self) -> float:
        return self.now


@dataclass(eq=False)
class Reader:
    heard: list[str] = field(default_factory=list)

    def notice(self, generation_id: str) -> None:
        self.heard.append(generation_id)


def generation(
    *, stops: tuple[str, ...] = (), clock: Clock | None = None, max_log_bytes: int = 10**6
) -> Generation:
    limits = GenerationLimits(60.0, max_log_bytes, stops, frozenset({END_OF_TURN}))
    return Generation("g", 7, limits, tokenizer=DECODER, clock=clock or Clock())


def feed(one: Generation, tokens: list[int]) -> None:
    for token in tokens:
        one.take(TokenOut("g", token))
        one.publish()


def text(one: Generation) -> str:
    return "".join(event.delta.text for event in one.log.after(0, 10**9))


def ids(one: Generation) -> list[int]:
    return [token for event in one.log.after(0, 10**9) for token in event.delta.token_ids]


@given(st.lists(st.integers(0, 255) | st.just(END_OF_TURN), max_size=40), st.sets(st.integers(0, 40)))
def test_joined_deltas_equal_what_decode_gives_for_every_grouping(raw: list[int], borders: set[int]) -> None:
    one = generation()
    for number, token in enumerate(raw):
        one.take(TokenOut("g", token))
        if number in borders:
            one.publish()
    one.finish(FinishedOut("g", "length"))
    visible = [token for token in raw if token != END_OF_TURN]
    assert text(one) == DECODER.decode(visible)
    assert ids(one) == visible
    seqs = [event.seq for event in one.log.after(0, 10**9)]
    assert seqs == list(range(1, len(seqs) + 1))


@given(st.text(alphabet="ab你🌤", max_size=20), st.text(alphabet="ab你🌤", min_size=1, max_size=3))
def test_visible_ids_spell_a_beginning_of_the_visible_text(answer: str, stop: str) -> None:
    one = generation(stops=(stop,))
    feed(one, tokens_of(answer))
    one.finish(FinishedOut("g", "stop"))
    assert text(one) == answer.split(stop, maxsplit=1)[0]
    assert text(one).startswith(DECODER.decode(ids(one)))
    assert one.num_visible_tokens == len(ids(one))


def test_nothing_follows_the_end() -> None:
    one = generation()
    feed(one, tokens_of("abc"))
    one.finish(FinishedOut("g", "stop"))
    feed(one, tokens_of("more"))
    one.finish(FinishedOut("g", "failed", "late"))
    one.abandon(RESTARTED)
    assert text(one) == "abc"
    assert one.log.last_seq == 2
    with pytest.raises(AssertionError):
        one.move(State.RUNNING)


def test_a_cancelled_answer_stays_cancelled_when_the_core_dies_first() -> None:
    one = generation()
    feed(one, tokens_of("abc"))
    one.end_soon(CANCELLED)
    feed(one, tokens_of("def"))
    one.abandon(RESTARTED)
    assert one.log.after(0, 10**9)[-1].done.finish_reason == "cancelled"
    assert text(one) == "abc"


def test_text_held_for_a_stop_string_leaves_at_the_end() -> None:
    one = generation(stops=("abcd",))
    feed(one, [*b"xab"])
    assert text(one) == "x"
    one.end_soon(CANCELLED)
    assert text(one) == "xab"


def test_time_to_first_token_runs_from_acceptance_to_the_first_delta() -> None:
    clock = Clock()
    one = generation(clock=clock)
    clock.now += 0.5
    feed(one, [0xE4])
    clock.now += 0.25
    feed(one, [0xBD, 0xA0])
    clock.now += 5
    feed(one, [0x41])
    one.finish(FinishedOut("g", "stop"))
    assert one.log.after(0, 10**9)[-1].done.timings.ttft_s == pytest.approx(0.75)


def test_a_log_that_is_full_ends_the_answer_as_length() -> None:
    one = generation(max_log_bytes=200)
    feed(one, [0x41] * 1000)
    assert one.ending is not None
    assert one.ending.reason == "length"
    assert one.log.num_bytes < 400


def test_followers_hear_of_every_logged_event_and_progress_ends_with_the_first() -> None:
    one, reader = generation(), Reader()
    one.follow(reader)
    one.show_queued(3)
    assert one.progress is not None
    feed(one, [0x41])
    assert one.progress is None
    one.show_prefill(1, 2)
    assert one.progress is None
    one.finish(FinishedOut("g", "stop"))
    assert reader.heard == ["g"] * 3


def test_an_error_code_of_the_core_is_kept_and_other_errors_get_one() -> None:
    for error, code in (
        ("context_length_exceeded: too long", "context_length_exceeded"),
        ("NaN", "generation_failed"),
    ):
        one = generation()
        one.finish(FinishedOut("g", "failed", error))
        assert one.log.after(0, 10**9)[-1].done.error_code == code
