"""The lane beside running answers: bounded micro-batches, fair turns, company only where it costs nobody."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.core.lane import Lane, LaneLimits
from inference.core.length_groups import BatchBounds, LengthGroups
from inference.core.messages import EmbedTexts, VerifyPairs
from tests.inference.core.driver import admit
from tests.inference.core.fakes import expected, make_fake_core

LIMITS = LaneLimits(max_batch=8, max_tokens=64)


@dataclass
class Encoder:
    """Gives sum and length of a text, or its sum alone as a score; remembers every micro-batch."""

    batches: list[list[list[int]]] = field(default_factory=list)
    poison: int = -1  # a token that breaks it
    hole: int = -1  # a token whose row is NaN

    def embed(self, texts: list[list[int]]) -> np.ndarray:
        self.batches.append(texts)
        if any(self.poison in text for text in texts):
            raise ValueError("a broken kernel")
        rows = [[np.nan if self.hole in text else sum(text), len(text)] for text in texts]
        return np.array(rows, dtype=np.float32)

    def score(self, texts: list[list[int]]) -> np.ndarray:
        return self.embed(texts)[:, 0]

    @property
    def costs(self) -> list[int]:
        return [len(batch) * max(map(len, batch)) for batch in self.batches]


def make_lane(limits: LaneLimits = LIMITS) -> tuple[Lane, Encoder, Encoder]:
    embedder, verifier = Encoder(), Encoder()
    return Lane(limits, embed=embedder.embed, dim=2, verify=verifier.score), embedder, verifier


def drain(lane: Lane) -> dict[str, list[float] | bytes | str]:
    """Answers by id, or errors."""
    answers: dict[str, list[float] | bytes | str] = {}
    while lane.has_work:
        step = lane.run_one()
        answers |= {out.id: out.error or out.vectors for out in step.embedded}
        answers |= {out.id: out.error or out.scores for out in step.verified}
    return answers


def test_while_a_thousand_texts_are_embedded_every_stream_gets_its_token_in_every_step() -> None:
    encoder = Encoder()
    core = make_fake_core(2000, encode=encoder.embed, step_tokens=32, lane=LaneLimits(8, 64))
    streams = [admit([n, 3], max_tokens=900) for n in range(3)]
    core.driver.step(*streams)
    texts = [[1] * (1 + n % 12) for n in range(1000)]
    requests = [EmbedTexts(f"e{n}", texts[n : n + 50]) for n in range(0, 1000, 50)]
    core.driver.step(*requests)
    num_steps = 1
    while core.driver.loop.stats().embedded_texts < 1000:
        num_batches = len(encoder.batches)
        pack = core.driver.step()
        num_steps += 1
        assert {token.id for token in pack.tokens} == {stream.id for stream in streams}
        assert len(encoder.batches) <= num_batches + 1
    assert max(encoder.costs) <= 32  # the step's budget, though the lane alone might take 64
    assert num_steps <= 1.2 * sum(map(len, texts)) / 32 + 20  # and little of it is padding
    assert len(core.driver.embedded) == len(requests)
    core.driver.run()
    for stream in streams:
        assert core.driver.ids(stream) == expected(stream.prompt_ids, 900)
    stats = core.driver.loop.stats()
    assert stats.lane_batches == len(encoder.batches)


def test_the_tokens_of_a_micro_batch_are_taken_from_the_prefill_of_its_step() -> None:
    """Padding is paid for too: 3 texts as long as the longest of them."""
    core = make_fake_core(step_tokens=48, encode=Encoder().embed)
    core.driver.step(admit([1] * 90), EmbedTexts("e", [[5] * 10, [5] * 8, [5] * 9]))
    assert core.runner.batches[0][0].num_tokens == 48 - 30
    core.driver.run()


def test_an_idle_engine_takes_up_the_whole_micro_batch() -> None:
    encoder = Encoder()
    core = make_fake_core(encode=encoder.embed, step_tokens=16, lane=LaneLimits(8, 64))
    core.driver.run(EmbedTexts("e", [[1] * 8] * 8))
    assert encoder.costs == [64]


def test_texts_that_came_during_a_step_go_together_in_the_next() -> None:
    lane, encoder, _ = make_lane()
    lane.add(EmbedTexts("first", [[1, 2]]))
    lane.add(EmbedTexts("second", [[3, 4]]))
    assert [out.id for out in lane.run_one(busy_tokens=32).embedded] == ["first", "second"]
    assert len(encoder.batches) == 1


def test_the_lane_answers_before_the_forward_of_its_step() -> None:
    """A look-up waits for the step that runs when it comes, and not for the next one as well."""
    core = make_fake_core(encode=Encoder().embed)
    core.driver.step(admit([1, 2], max_tokens=9))
    num_forwards = len(core.runner.batches)
    first = next(core.driver.loop.step([EmbedTexts("e", [[3, 4]])]))
    assert [out.id for out in first.embedded] == ["e"]
    assert not first.tokens
    assert len(core.runner.batches) == num_forwards


def test_a_micro_batch_is_bounded_by_texts_and_by_tokens() -> None:
    lane, encoder, _ = make_lane()
    lane.add(EmbedTexts("e", [[1, 2]] * 9))
    assert lane.run_one(busy_tokens=64).spent_tokens == 16
    lane.add(EmbedTexts("long", [[1] * 30] * 3))
    lane.run_one(busy_tokens=64)
    assert encoder.batches[1] == [[1, 2]]
    assert lane.run_one(busy_tokens=64).spent_tokens == 60  # two fill the tokens, the third waits
    assert lane.run_one(busy_tokens=64).spent_tokens == 30


def test_texts_and_pairs_take_turns() -> None:
    lane, embedder, verifier = make_lane()
    lane.add(EmbedTexts("e", [[1, 2]] * 40))
    lane.add(VerifyPairs("v", [[3, 4]] * 24))
    for turn in range(1, 4):
        lane.run_one()
        lane.run_one()
        assert (len(embedder.batches), len(verifier.batches)) == (turn, turn)
    assert lane.num_verified == 24
    lane.run_one()
    assert lane.num_embedded == 32


def test_scores_and_vectors_come_back_in_their_order() -> None:
    lane, _, _ = make_lane()
    texts = [[n] * (1 + (7 * n) % 11) for n in range(1, 30)]
    lane.add(EmbedTexts("e", texts))
    lane.add(VerifyPairs("v", texts[::-1]))
    lane.add(VerifyPairs("none", []))
    answers = drain(lane)
    vectors = np.frombuffer(answers["e"], dtype="<f4").reshape(-1, 2)
    assert vectors.tolist() == [[sum(text), len(text)] for text in texts]
    assert answers["v"] == [sum(text) for text in texts[::-1]]
    assert answers["none"] == []


@pytest.mark.parametrize("fault", ["poison", "hole"])
def test_a_broken_text_fails_its_own_request_only_and_never_runs_two_batches_in_a_step(fault: str) -> None:
    lane, _, verifier = make_lane()
    setattr(verifier, fault, 0)
    lane.add(VerifyPairs("bad", [[1], [0], [1]]))
    lane.add(VerifyPairs("good", [[2], [3]]))
    lane.add(EmbedTexts("e", [[0]]))
    answers: dict[str, object] = {}
    for _ in range(8):
        before = lane.num_batches
        step = lane.run_one()
        assert lane.num_batches <= before + 1
        for out in step.verified:
            assert out.id not in answers
            answers[out.id] = out.error or out.scores
    assert "verifier failed" in str(answers["bad"])
    assert answers["good"] == [2, 3]
    assert not lane.has_work


def test_an_encoder_that_forgets_a_row_fails_the_request_not_the_loop() -> None:
    lane = Lane(LIMITS, embed=lambda texts: np.ones((len(texts) - 1, 2), dtype=np.float32), dim=2)
    lane.add(EmbedTexts("e", [[1], [2]]))
    assert "rows" in str(drain(lane)["e"])


def test_a_text_without_tokens_fails_its_own_request_not_the_loop() -> None:
    lane, _, _ = make_lane()
    lane.add(VerifyPairs("bad", [[1], []]))
    lane.add(VerifyPairs("good", [[2]]))
    answers = drain(lane)
    assert "without tokens" in str(answers["bad"])
    assert answers["good"] == [2]


def test_what_is_not_served_is_answered_with_an_error() -> None:
    core = make_fake_core()
    core.driver.run(EmbedTexts("e", [[1]]), VerifyPairs("v", [[1], [2]]))
    assert core.driver.embedded[0].error
    assert core.driver.verified[0].error


@dataclass(frozen=True)
class Text:
    number: int
    length: int

    @property
    def num_tokens(self) -> int:
        return self.length


@given(
    lengths=st.lists(st.integers(1, 512), max_size=60),
    max_texts=st.integers(1, 16),
    max_tokens=st.integers(1, 600),
)
def test_every_batch_is_bounded_alike_and_begins_with_the_oldest(
    lengths: list[int], max_texts: int, max_tokens: int
) -> None:
    groups: LengthGroups[Text] = LengthGroups()
    waiting = {number: Text(number, length) for number, length in enumerate(lengths)}
    for text in waiting.values():
        groups.add(text)
    bounds = BatchBounds(max_texts, max_tokens)
    while groups:
        batch = groups.take(bounds)
        oldest = waiting[min(waiting)]
        assert oldest in batch
        assert len(batch) <= max_texts
        longest = max(text.length for text in batch)
        assert len(batch) * longest <= max_tokens or len(batch) == 1
        assert all(abs(text.length - oldest.length) <= max(oldest.length, 16) for text in batch)
        for text in batch:
            assert waiting.pop(text.number) is text
    assert not waiting


def test_choosing_a_batch_does_not_look_at_every_waiting_text() -> None:
    """With 5,000 waiting texts a sort per step would take longer than the step itself."""
    looks = 0

    class Counted(Text):
        @property
        def num_tokens(self) -> int:
            nonlocal looks
            looks += 1
            return self.length

    groups: LengthGroups[Text] = LengthGroups()
    for number in range(5000):
        groups.add(Counted(number, 1 + number % 50))
    looks = 0
    groups.take(BatchBounds(32, 1024))
    assert looks <= 50
