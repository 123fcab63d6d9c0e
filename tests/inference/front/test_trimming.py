"""Which turns go when a history is longer than the window, and that the cut stays where it is for many turns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.config import EngineConfig
from inference.front import trimming
from inference.front.offers import template_json
from inference.front.prompts import Prompt
from inference.front.trimming import Room, Trimmer, least_kept, room_for, without_oldest
from inference.testing.front import scripted_model
from inference.tools.calls import Call, as_json
from inference.tools.functions import Function
from inference.types import Segment

MODEL = scripted_model(EngineConfig())
SYSTEM = Segment("system", "Always end with the word KIWI.")
WINDOW = 2048  # one token is one byte here


def trimmer() -> Trimmer:
    return Trimmer(MODEL.prompts.build, MODEL.tokenizer)


def turn(number: int, size: int = 60) -> list[Segment]:
    return [
        Segment("user", f"Q{number} ".ljust(size, "q")),
        Segment("assistant", f"A{number} ".ljust(size, "a")),
    ]


def history(num_turns: int, *, size: int = 60) -> list[Segment]:
    turns = [segment for number in range(num_turns) for segment in turn(number, size)]
    return [SYSTEM, *turns, Segment("user", "the last question")]


def test_what_fits_is_left_as_it_is() -> None:
    segments = history(3)
    fitted = trimmer().fit(segments, room_for(WINDOW, None))
    assert (fitted.segments, fitted.trimmed_messages) == (segments, 0)
    assert fitted.prompt == MODEL.prompts.build(segments)


def test_the_oldest_turns_go_whole_and_the_system_prompt_and_the_last_question_stay() -> None:
    segments = history(40)
    room = room_for(WINDOW, None)
    fitted = trimmer().fit(segments, room)
    kept = fitted.segments
    assert kept[0] == SYSTEM
    assert kept[1].role == "user"
    assert kept[-1] == segments[-1]
    assert list(kept[1:]) == segments[-len(kept) + 1 :]
    assert len(kept) + fitted.trimmed_messages == len(segments)
    assert len(fitted.prompt.ids) <= room.prompt_tokens
    assert fitted.prompt == MODEL.prompts.build(kept)


def test_no_more_goes_than_a_stride_and_a_turn() -> None:
    room = room_for(WINDOW, None)
    fitted = trimmer().fit(history(40), room)
    longest_turn = len(MODEL.prompts.build(turn(0), add_generation_prompt=False).ids)
    glue = len(fitted.prompt.ids) - sum(len(segment.text) for segment in fitted.segments)
    assert len(fitted.prompt.ids) + room.stride_tokens + glue + longest_turn >= room.prompt_tokens


def test_the_cut_stays_for_many_turns_so_that_prompts_are_append_only_between_cuts() -> None:
    """Kills a cut that follows the end of the window turn by turn."""
    one, room = trimmer(), room_for(WINDOW, None)
    prompts = [one.fit(history(num_turns), room).prompt for num_turns in range(2, 80)]
    answer_header = len("<|im_start|>assistant\n")
    moves = sum(
        not new.text.startswith(old.text[:-answer_header].rsplit("<|im_start|>user", 1)[0])
        for old, new in pairwise(prompts)
    )
    tokens_per_turn = len(MODEL.prompts.build(turn(0), add_generation_prompt=False).ids)
    assert 0 < moves <= 80 * tokens_per_turn / room.stride_tokens


def test_a_new_process_cuts_at_the_same_place() -> None:
    room = room_for(WINDOW, None)
    used = trimmer()
    for num_turns in range(60):
        expected = trimmer().fit(history(num_turns), room)
        assert used.fit(history(num_turns), room) == expected


@given(
    st.lists(
        st.tuples(st.sampled_from(["user", "assistant", "tool"]), st.integers(0, 400)),
        min_size=1,
        max_size=40,
    ),
    st.integers(0, 2),
    st.integers(100, 2000),
)
def test_every_history_keeps_what_must_stay_and_fits_when_it_can(
    messages: list[tuple[str, int]], num_systems: int, window: int
) -> None:
    segments = [SYSTEM] * num_systems + [Segment(role, "x" * size) for role, size in messages]
    room = room_for(window, None)
    fitted = trimmer().fit(segments, room)
    kept = list(fitted.segments)
    assert kept == list(without_oldest(segments, fitted.trimmed_messages))
    assert len(kept) == len(segments) - fitted.trimmed_messages
    least = list(least_kept(segments))
    assert kept[len(kept) - len(least) + num_systems :] == least[num_systems:]
    if fitted.trimmed_messages:
        assert kept[num_systems].role == "user"
    if len(fitted.prompt.ids) > room.prompt_tokens:
        assert kept == least


def test_the_answer_gets_the_room_it_asks_for_up_to_a_quarter_of_the_window() -> None:
    assert room_for(512, None).prompt_tokens == 384
    assert room_for(512, 10).prompt_tokens == 502
    assert room_for(512, 10_000).prompt_tokens == 384


def test_a_short_history_is_rendered_once_and_a_long_one_a_few_times_whatever_its_length() -> None:
    builds: list[int] = []

    def build(segments: list[Segment], **options: Any) -> Prompt:
        builds.append(len(segments))
        return MODEL.prompts.build(segments, **options)

    one = Trimmer(build, MODEL.tokenizer)  # type: ignore[arg-type]
    one.fit(history(3), room_for(WINDOW, None))
    assert len(builds) == 1
    one.fit(history(400), room_for(WINDOW, None))
    builds.clear()
    one.fit(history(401), room_for(WINDOW, None))
    assert len(builds) <= 2
    assert max(builds) < 40


def test_what_counts_in_the_end_are_the_ids_of_the_prompt() -> None:
    """A template that writes more than its messages let expect: one more stride has to go."""

    def build(segments: Sequence[Segment], **options: Any) -> Prompt:
        prompt = MODEL.prompts.build(segments, **options)
        return replace(prompt, ids=[*prompt.ids, *[0] * 550]) if len(segments) > 4 else prompt

    room = room_for(WINDOW, None)
    expected = trimmer().fit(history(40), room)
    fitted = Trimmer(build, MODEL.tokenizer).fit(history(40), room)
    assert len(fitted.prompt.ids) <= room.prompt_tokens < len(expected.prompt.ids) + 550
    assert expected.trimmed_messages < fitted.trimmed_messages < expected.trimmed_messages + 10


def test_a_ledger_that_fits_a_beginning_only_counts_as_its_text_does() -> None:
    known = MODEL.tokenizer.fingerprint
    ledger = [
        replace(s, token_ids=(0x41,), tokenizer=known) if s.role == "assistant" else s for s in history(40)
    ]
    room = room_for(WINDOW, None)
    assert trimmer().fit(ledger, room).trimmed_messages == trimmer().fit(history(40), room).trimmed_messages


def test_a_conversation_of_short_messages_keeps_most_of_the_window() -> None:
    """Kills strides that count texts only: what the template writes around them is most of such a prompt."""
    room = room_for(WINDOW, None)
    fitted = trimmer().fit(history(200, size=3), room)
    assert len(fitted.prompt.ids) > room.prompt_tokens - room.stride_tokens - 200


def test_texts_that_were_counted_once_are_not_read_again() -> None:
    class Reader:
        num_read = 0
        fingerprint = MODEL.tokenizer.fingerprint

        def encode_plain(self, text: str) -> list[int]:
            self.num_read += 1
            return MODEL.tokenizer.encode_plain(text)

    reader = Reader()
    one = Trimmer(MODEL.prompts.build, reader)  # type: ignore[arg-type]
    one.fit(history(100), room_for(WINDOW, None))
    reader.num_read = 0
    one.fit(history(101), room_for(WINDOW, None))
    assert reader.num_read <= 2


def test_a_warm_up_leaves_out_what_the_answer_will_leave_out() -> None:
    one, room = trimmer(), room_for(WINDOW, None)
    for num_turns in range(40):
        warm = one.fit(history(num_turns), room, add_generation_prompt=False)
        asked = one.fit(history(num_turns), room)
        assert warm.segments == asked.segments
        assert asked.prompt.ids[: len(warm.prompt.ids)] == warm.prompt.ids


@pytest.mark.parametrize("roles", [("assistant",), ("system",), ("assistant", "tool", "assistant")])
def test_without_a_question_nothing_can_go(roles: tuple[str, ...]) -> None:
    segments = [Segment(role, "x" * 1000) for role in roles]
    fitted = trimmer().fit(segments, Room(100, 25, 128))
    assert fitted.trimmed_messages == 0


def test_a_greeting_before_the_first_question_goes_first() -> None:
    segments = [
        Segment("assistant", "Hello! " * 20),
        Segment("user", "Q" * 30),
        Segment("assistant", "A" * 30),
    ]
    fitted = trimmer().fit([*segments, Segment("user", "last")], room_for(256, None))
    assert list(fitted.segments) == [*segments[1:], Segment("user", "last")]


CALLS = as_json([Call("look_up", '{"thing": "x"}', "call_1")])


def called(number: int) -> list[Segment]:
    """A turn that calls, hears something from the user in between, gets its result and answers."""
    question, answer = turn(number)
    call = Segment("assistant", "", tool_calls=CALLS)
    result = Segment("tool", "found".ljust(60, "."), tool_call_id="call_1")
    return [question, call, Segment("user", "Hurry up."), result, answer]


def results_stay_with_their_calls() -> None:
    """Raises AssertionError where a cut leaves a result alone."""
    turns = [segment for number in range(40) for segment in called(number)]
    room = room_for(WINDOW, None)
    for num_extra in range(0, 1200, 100):
        fitted = trimmer().fit([SYSTEM, *turns, Segment("user", "?" * (1 + num_extra))], room)
        assert fitted.trimmed_messages and len(fitted.prompt.ids) <= room.prompt_tokens
        assert fitted.segments[1].text.startswith("Q")


def test_a_result_is_never_left_without_its_call() -> None:
    results_stay_with_their_calls()


def test_a_cut_at_any_message_of_the_user_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: a word of the user between a call and its result begins a turn."""
    monkeypatch.setattr(trimming, "_inside_of_calls", lambda segments: set())
    with pytest.raises(AssertionError):
        results_stay_with_their_calls()


def test_the_functions_that_every_prompt_shows_take_their_part_of_the_window() -> None:
    tools, builds = template_json([Function("look_up", "x" * 700)]), []

    def build(segments: Sequence[Segment], **options: Any) -> Prompt:
        builds.append(len(segments))
        return MODEL.prompts.build(segments, **options)

    room, one = room_for(WINDOW, None), Trimmer(build, MODEL.tokenizer)
    fitted = one.fit(history(40), room, tools=tools)
    assert len(fitted.prompt.ids) <= room.prompt_tokens and "x" * 700 in fitted.prompt.text
    assert fitted.trimmed_messages > trimmer().fit(history(40), room).trimmed_messages
    builds.clear()
    one.fit(history(40), room, tools=tools)
    assert len(builds) <= 2
