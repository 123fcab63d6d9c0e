from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

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


def generation(*, clock: Clock | None = None, **limits: Any) -> Generation:
    defaults = GenerationLimits(60.0, 10**6, stop_ids=frozenset({END_OF_TURN}))
    return Generation("g", 7, replace(defaults, **limits), tokenizer=DECODER, clock=clock or Clock())


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


def test_a_stop_string_before_min_tokens_is_text_and_ends_the_answer_behind_them() -> None:
    one = generation(stops=("b",), min_tokens=4)
    feed(one, [*b"abcabc"])
    assert text(one) == "abca"
    assert one.ending is not None
    assert one.ending.reason == "stop"


def test_a_stop_string_is_not_made_of_text_that_has_left() -> None:
    one = generation(stops=("ab",), min_tokens=2)
    feed(one, [*b"abxab"])
    assert text(one) == "abx"


def test_a_circling_answer_ends_with_a_reason_of_its_own_and_keeps_its_text() -> None:
    one = generation(repetition_tokens=16)
    feed(one, [*b"so: ", *b"ha" * 100])
    assert one.ending is not None
    assert one.ending.reason == "repetition"
    assert text(one) == "so: " + "ha" * 8
    one.finish(FinishedOut("g", "repetition"))
    assert one.log.after(0, 10**9)[-1].done.finish_reason == "repetition"


def test_an_answer_may_circle_until_min_tokens() -> None:
    one = generation(repetition_tokens=16, min_tokens=90)
    feed(one, [*b"ha" * 100])
    assert 90 <= one.num_visible_tokens < 90 + 16


def test_stop_ids_of_the_request_have_no_text() -> None:
    one = generation(stop_ids=frozenset({END_OF_TURN, 0x42}))
    feed(one, [*b"aB"])
    one.finish(FinishedOut("g", "stop"))
    assert (text(one), ids(one)) == ("a", [0x61])


def test_logprobs_leave_with_their_tokens_and_spell_the_answer_in_bytes() -> None:
    answer = "a你🌤"
    one = generation(wants_logprobs=True, stops=("zz",))
    for number, token in enumerate(answer.encode()):
        one.take(TokenOut("g", token, -0.5 * number, [(token, -0.5 * number), (0x80, -3.0)]))
        one.publish()
    one.finish(FinishedOut("g", "stop"))
    deltas = [event.delta for event in one.log.after(0, 10**9) if event.HasField("delta")]
    for delta in deltas:
        assert [entry.token_id for entry in delta.logprobs] == list(delta.token_ids)
    entries = [entry for delta in deltas for entry in delta.logprobs]
    assert b"".join(entry.token for entry in entries) == answer.encode()
    assert [entry.logprob for entry in entries] == [-0.5 * number for number in range(len(entries))]
    assert entries[1].token == b"\xe4"
    assert [top.token for top in entries[1].top] == [b"\xe4", b"\x80"]


def test_nobody_pays_for_logprobs_that_nobody_asked_for() -> None:
    one = generation()
    one.take(TokenOut("g", 0x41, -1.0, [(0x41, -1.0)]))
    one.publish()
    assert not one.log.after(0, 10**9)[0].delta.logprobs


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
