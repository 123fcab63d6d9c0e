"""One generation whose news cannot be handled, among others of the same step."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from inference.core.messages import Cancel, Command, FinishedOut, PrefillProgress, StepPack, TokenOut
from inference.front.archive import Archive
from inference.front.counters import Counters
from inference.front.delivery import Delivery
from inference.front.generation import CANCELLED, RESTARTED, Generation, GenerationLimits
from inference.proto import engine_pb2 as pb
from inference.testing.tokenizer import ByteTokenizer

POISON = 0x99


class FragileTokenizer(ByteTokenizer):
    def decode(self, ids: Sequence[int]) -> str:
        if POISON in ids:
            raise RuntimeError("no such piece")
        return super().decode(ids)


class Front:
    """Two generations, "good" and "bad", of a delivery whose commands are kept."""

    def __init__(self) -> None:
        self.archive = Archive(ttl_s=60, clock=lambda: 0.0)
        self.counters = Counters()
        self.sent: list[Command] = []
        self.ended: list[str] = []
        self.delivery = Delivery(
            self.archive,
            self.counters,
            send=self.sent.append,
            on_ended=lambda generation: self.ended.append(generation.id),
        )
        self.good, self.bad = self._add("good"), self._add("bad")

    def _add(self, name: str) -> Generation:
        limits = GenerationLimits(60, 10**6, repetition_tokens=8)
        one = Generation(name, 1, limits, tokenizer=FragileTokenizer(), clock=lambda: 0.0)
        self.archive.add(one)
        return one

    def hear(self, *tokens: tuple[str, int], finished: Sequence[FinishedOut] = ()) -> None:
        outs = [TokenOut(name, token) for name, token in tokens]
        self.delivery.hand_out(StepPack(tokens=outs, finished=list(finished)))


def text(one: Generation) -> str:
    return "".join(event.delta.text for event in one.log.after(0, 10**9))


def end(one: Generation) -> pb.Done:
    return one.log.after(0, 10**9)[-1].done


@pytest.mark.parametrize("order", [("good", "bad"), ("bad", "good")])
def test_a_token_that_cannot_be_decoded_ends_its_own_answer_only(order: tuple[str, str]) -> None:
    front = Front()
    front.hear(("good", 0x61), ("bad", 0x61))
    news = {"good": ("good", 0x62), "bad": ("bad", POISON)}
    front.hear(*(news[name] for name in order))
    front.hear(("good", 0x63), ("bad", 0x63), finished=[FinishedOut("good", "stop")])
    assert text(front.good) == "abc"
    assert end(front.good).finish_reason == "stop"
    assert text(front.bad) == "a"
    assert (end(front.bad).finish_reason, end(front.bad).error_code) == ("failed", "generation_failed")
    assert front.sent == [Cancel("bad", "failed", 1)]
    assert front.ended == ["good"]
    assert front.archive.num_live == 0


def test_an_end_that_makes_no_sense_ends_its_own_answer_only() -> None:
    front = Front()
    strange = FinishedOut("bad", "weird reason")
    front.hear(finished=[strange, FinishedOut("good", "length")])
    assert end(front.bad).error_code == "generation_failed"
    assert end(front.good).finish_reason == "length"
    front = Front()
    impossible = FinishedOut("bad", "stop", prefilled_tokens=-1)
    front.hear(finished=[impossible, FinishedOut("good", "length")])
    assert front.bad.log.is_done
    assert end(front.good).finish_reason == "length"


def test_progress_that_makes_no_sense_ends_its_own_answer_only() -> None:
    front = Front()
    progress = [PrefillProgress("bad", -1, -1), PrefillProgress("good", 1, 2)]
    front.delivery.hand_out(StepPack(progress=progress))
    assert not front.bad.is_live
    assert front.good.progress is not None


def test_a_lost_core_ends_all_answers_also_when_one_cannot_be_ended_in_order() -> None:
    front = Front()
    front.bad._undecoded = None  # type: ignore[assignment]
    front.bad._stops = None  # type: ignore[assignment]
    front.delivery.abandon_all(RESTARTED)
    assert end(front.good).error_code == "engine_restarted"
    assert front.bad.log.is_done
    assert front.archive.num_live == 0


def test_an_answer_that_was_cancelled_stays_cancelled_when_its_end_breaks() -> None:
    front = Front()
    front.delivery.end_soon(front.bad, CANCELLED)
    front.hear(finished=[FinishedOut("bad", "cancelled", prefilled_tokens=-1)])
    assert end(front.bad).finish_reason == "cancelled"


def test_a_circling_answer_is_counted_once_and_the_core_is_told() -> None:
    front = Front()
    for _ in range(20):
        front.hear(("good", 0x61))
    assert front.counters.repetitions == 1
    assert front.sent == [Cancel("good", "repetition", 8)]


def test_news_of_nobody_are_nobodys_problem() -> None:
    front = Front()
    front.hear(("stranger", 0x61), finished=[FinishedOut("stranger", "stop")])
    assert front.archive.num_live == 2
