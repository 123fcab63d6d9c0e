"""What counts as going round in circles, and what only looks like it."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.front.repetition import RepetitionDetector, shortest_period
from inference.models.tiny import byte_level_tokenizer
from inference.testing.tokenizer import tokens_of

N = 256


def ends_at(tokens: Iterable[int], num_tokens: int = N) -> int | None:
    """After how many tokens the answer is ended."""
    detector = RepetitionDetector(num_tokens)
    return next((number for number, token in enumerate(tokens, 1) if detector.push(token)), None)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=N // 4), st.lists(st.integers(0, 3), max_size=100))
def test_every_passage_up_to_a_quarter_is_found_within_a_quarter(
    passage: list[int], before: list[int]
) -> None:
    rounds = passage * (3 * N // len(passage))
    found = ends_at([*before, *rounds])
    assert found is not None
    assert found <= len(before) + N + N // 4


def test_a_passage_whose_tokens_all_come_twice_is_found() -> None:
    """Kills a detector that follows the last place of a token: each of these stands nearer than one round."""
    assert ends_at([*b"aababb"] * 100) is not None


@given(st.lists(st.integers(0, 2), min_size=1, max_size=40))
def test_the_shortest_period_is_the_one_that_trying_all_finds(tokens: list[int]) -> None:
    periods = range(1, len(tokens) + 1)
    expected = next(p for p in periods if all(tokens[i] == tokens[i - p] for i in range(p, len(tokens))))
    assert shortest_period(tokens) == expected


def test_a_passage_longer_than_a_quarter_is_no_loop_yet() -> None:
    passage = list(range(N // 4 + 1))
    assert ends_at(passage * 40) is None
    assert ends_at(passage[:-1] * 40) == N


def test_a_loop_that_the_answer_left_again_is_forgotten() -> None:
    assert ends_at([*[7] * (N - 1), *range(10_000)]) is None


def test_off_means_off() -> None:
    assert ends_at([7] * 10_000, 0) is None


CODE = "".join(
    f"    def test_value_{i}(self) -> None:\n        self.assertEqual(self.table[{i}], {i * i})\n\n"
    for i in range(40)
)
SAMPLES = {
    "numbered list": "".join(f"{i}. Buy milk\n" for i in range(1, 200)),
    "markdown table": "".join(f"| {name} | 0 | 0 | 0 | yes |\n" for name in map(str, range(100))),
    "table of zeros with row numbers": "\n".join(f"{i:3d} " + "0 " * 30 for i in range(30)),
    "multiplication table": "".join(f"{a} x {b} = {a * b}\n" for a in range(10) for b in range(10)),
    "json": json.dumps([{"id": i, "tags": [], "is_open": True} for i in range(100)], indent=2),
    "code": CODE,
    "rule under a heading": "Title\n" + "-" * 80 + "\n" + "=" * 80 + "\ntext\n",
    "Chinese list": "".join(f"第{i}项：今天天气很好。\n" for i in range(100)),
    "Chinese poem with a refrain": "床前明月光，疑是地上霜。举头望明月，低头思故乡。\n" * 3,
    "chorus": ("La la la la, la la la la, hey!\n" * 4 + "And now the verse goes on and on.\n") * 2,
}


@pytest.mark.parametrize("text", SAMPLES.values(), ids=SAMPLES.keys())
def test_text_that_repeats_its_shape_is_no_loop(text: str) -> None:
    assert ends_at(tokens_of(text)) is None
    assert ends_at(byte_level_tokenizer().encode(text, add_special_tokens=False).ids) is None


@pytest.mark.parametrize(
    "loop", ["I am sorry. ", "ha", "你好", "\n", "The answer is 42, because the answer is: "]
)
def test_what_a_caught_model_writes_is_a_loop(loop: str) -> None:
    assert ends_at(tokens_of("Well, let me think. " + loop * 1200)) is not None
