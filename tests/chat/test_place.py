"""Text that waits for company: nothing is lost or reordered, and no token waits longer than it may."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatsite.chat import place as places
from chatsite.chat.events import Accepted, Ended, Piece, Waiting
from chatsite.chat.live import HandedOver, LiveAnswer
from chatsite.chat.models import Origin, State
from chatsite.chat.pace import AT_END, Pace
from chatsite.chat.place import Place
from chatsite.chat.tail import events_of
from inference.types import TokenLogprob
from tests.chat.virtual import run_virtually

PACE = Pace(4, 0.05)
SLOW = Pace(10, 1.0)
# Gaps in milliseconds before each token: bursts, a steady model, a stalling one.
GAPS = st.lists(st.sampled_from([0, 0, 1, 7, 20, 49, 50, 51, 400, 5000]), min_size=1, max_size=60)


def ended(live: LiveAnswer) -> Ended:
    return Ended(live.generation, State.COMPLETE, "stop", Origin.MODEL)


class Written:
    """One answer of numbered words, each after its gap; what a follower got of it, and the times of both."""

    def __init__(self, gaps_ms: Iterable[int]) -> None:
        self.gaps_ms = list(gaps_ms)
        self.said_at: list[float] = []
        self.got: list[tuple[float, Piece]] = []

    async def run(self, pace: Pace = PACE) -> Written:
        live, loop = LiveAnswer(uuid4()), asyncio.get_running_loop()
        writing = asyncio.create_task(self._write(live))
        async for event in events_of(live, pace):
            if isinstance(event, Piece):
                self.got.append((loop.time(), event))
        await writing
        return self

    async def _write(self, live: LiveAnswer) -> None:
        for number, gap_ms in enumerate(self.gaps_ms, 1):
            await asyncio.sleep(gap_ms / 1000)
            self.said_at.append(asyncio.get_running_loop().time())
            live.add_text(number, f"{number} ", 1)
        live.say(ended(live))


def check_exact(written: Written) -> None:
    pieces = [piece for _, piece in written.got]
    num = len(written.gaps_ms)
    assert "".join(piece.text for piece in pieces) == "".join(f"{n} " for n in range(1, num + 1))
    assert pieces[-1].seq == num
    assert sum(piece.num_tokens for piece in pieces) == num
    offset = 0
    for piece in pieces:
        assert piece.offset == offset
        offset += len(piece.text)


def check_in_time(written: Written) -> None:
    """The first token at once; every later piece when it has its tokens or its time, whichever is first."""
    assert written.got[0][0] == written.said_at[0]
    assert written.got[0][1].seq == 1 or written.said_at[0] == written.said_at[written.got[0][1].seq - 1]
    first = 1
    for at, piece in written.got:
        assert at - written.said_at[first - 1] <= 0.05 + 1e-9
        if piece.num_tokens > 4:
            assert at == written.said_at[first + 2]  # the fourth one came with others at the same time
        first = piece.seq + 1


def check_merged(written: Written) -> None:
    """A steady source: the first alone, then four by four, and the rest at the end."""
    assert [piece.num_tokens for _, piece in written.got] == [1] + [4] * 9 + [3]


@given(GAPS)
def test_text_numbers_and_offsets_are_exact(gaps_ms: list[int]) -> None:
    check_exact(run_virtually(Written(gaps_ms).run()))


@given(GAPS)
def test_no_token_waits_longer_than_the_window(gaps_ms: list[int]) -> None:
    check_in_time(run_virtually(Written(gaps_ms).run()))


def test_answers_of_one_batch_fall_due_one_after_the_other() -> None:
    answers = [uuid4() for _ in range(400)]
    waits = [PACE.wait_s(answer) or 0.0 for answer in answers]
    assert waits == [PACE.wait_s(answer) for answer in answers]
    assert all(0.025 < wait <= 0.05 for wait in waits)
    in_each_fifth = Counter(int((wait - 0.025 - 1e-9) / 0.005) for wait in waits)
    assert (
        len(in_each_fifth) == 5 and max(in_each_fifth.values()) < 140
    )  # 80 each; 140 is seven deviations off


def test_a_steady_source_is_really_merged() -> None:
    check_merged(run_virtually(Written([1] * 40).run()))


def test_who_reads_the_whole_is_woken_for_it_only() -> None:
    assert [piece.num_tokens for _, piece in run_virtually(Written([100] * 40).run(AT_END)).got] == [1, 39]


def test_an_event_between_pieces_keeps_its_place() -> None:
    async def run() -> list[str]:
        live = LiveAnswer(uuid4())
        live.say(Accepted(live.generation))
        place, kinds = Place(live, SLOW, lambda: None), []
        say: list[Callable[[], None]] = [
            lambda: live.add_text(1, "a", 1),
            lambda: live.add_text(2, "b", 1),
            lambda: live.say(Waiting(live.generation, 3)),
            lambda: live.add_text(3, "c", 1),
            lambda: live.say(ended(live)),
        ]
        for one in say:
            one()
            while (event := place.take()) is not None:
                kinds.append(getattr(event, "text", type(event).__name__))
        place.leave()
        return kinds

    assert run_virtually(run()) == ["Accepted", "a", "b", "Waiting", "c", "Ended"]


def test_a_failure_comes_after_the_text_before_it() -> None:
    async def run() -> list[str]:
        live, texts = LiveAnswer(uuid4()), []
        live.add_text(1, "a", 1)
        place = Place(live, SLOW, lambda: None)
        texts.append(place.take())
        assert place.take() is None
        live.add_text(2, "b", 1)
        assert place.take() is None  # it waits
        live.fail(HandedOver())
        texts.append(place.take())
        with pytest.raises(HandedOver):
            place.take()
        place.leave()
        return [getattr(event, "text", "") for event in texts]

    assert run_virtually(run()) == ["a", "b"]


def test_what_is_told_of_each_token_is_merged_with_its_text() -> None:
    async def run() -> tuple[TokenLogprob, ...]:
        live = LiveAnswer(uuid4())
        for number in (1, 2):
            live.add_text(number, "x", 1, (TokenLogprob(number, b"x", -number),))
        piece = await anext(events_of(live))
        assert isinstance(piece, Piece)
        return piece.logprobs

    assert [one.token_id for one in run_virtually(run())] == [1, 2]


def test_who_has_left_is_not_called_any_more() -> None:
    async def run() -> int:
        live, calls = LiveAnswer(uuid4()), list[int]()
        place = Place(live, PACE, lambda: calls.append(1))
        live.add_text(1, "a", 1)
        while place.take() is not None:
            pass
        live.add_text(2, "b", 1)  # its timer runs
        place.leave()
        live.say(ended(live))
        await asyncio.sleep(1)
        assert live.unfollowed_s >= 0.0
        return len(calls)

    assert run_virtually(run()) == 1


def never_by_the_clock(self: Place) -> None:
    if not self._is_due and not self._may_wait():
        self._fall_due()


def never_alone(self: Place) -> bool:
    return self._live.num_tokens - self._num_tokens_seen < 4 and not self._live.is_over


def always_at_once(self: Place) -> bool:
    return False


@pytest.mark.parametrize(
    ("name", "mutant", "check"),
    [
        ("on_said", never_by_the_clock, check_in_time),
        ("_may_wait", never_alone, check_in_time),
        ("_may_wait", always_at_once, check_merged),
    ],
)
def test_another_pace_would_be_noticed(
    name: str, mutant: object, check: Callable[[Written], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    written = run_virtually(Written([1] * 40 if check is check_merged else [0, 20, 400, 1, 1]).run())
    if check is not check_merged:
        check(written)
    monkeypatch.setattr(places.Place, name, mutant)
    broken = run_virtually(Written([1] * 40 if check is check_merged else [0, 20, 400, 1, 1]).run())
    with pytest.raises(AssertionError):
        check(broken)
