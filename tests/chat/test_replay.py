"""A stored answer comes at once, in pieces; paced, it takes as long as it took to make."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest

from chatsite.chat.relay import LONGEST_PACED_S, replay
from semcache.rules.policy import Rule
from semcache.service import Decision, Hit, Outcome, Reason
from tests.chat.virtual import run_virtually

TEXT = "All that glitters is not gold. " * 20


class Record:
    """Notes when which piece came."""

    tokenizer = ""

    def __init__(self) -> None:
        self.pieces: list[tuple[float, str, tuple[int, ...]]] = []

    def add_text(self, seq: int, text: str, token_ids: tuple[int, ...]) -> None:
        assert seq == len(self.pieces) + 1
        self.pieces.append((asyncio.get_running_loop().time(), text, token_ids))


def replayed(sharing: str = "public", answer: str = TEXT, took_ms: float = 5000.0) -> Record:
    hit = Hit(
        1, "q", answer, token_ids=(1, 2), tokenizer="t", num_tokens=2, created_at=datetime(2026, 1, 1, tzinfo=UTC),
        age_s=1, similarity=1.0, took_ms=took_ms,
    )  # fmt: skip
    rule = Rule(1, "r", sharing=sharing)
    record: Any = Record()
    run_virtually(replay(Decision(Outcome.HIT_EXACT, Reason.EXACT, hit, rule=rule), hit, record))
    assert "".join(text for _, text, _ in record.pieces) == answer
    assert [ids for *_, ids in record.pieces if ids] == [(1, 2)] and record.pieces[-1][2]
    return record  # type: ignore[no-any-return]


def test_a_stored_answer_is_there_within_600_milliseconds() -> None:
    record = replayed()
    assert record.pieces[0][0] == 0.0 and record.pieces[-1][0] < 0.6
    assert len(record.pieces) > 1


@pytest.mark.parametrize("sharing", ["tenant", "public", "promoted"])
def test_paced_it_takes_as_long_as_it_took(config: Any, sharing: str) -> None:
    config(cache_paced_replay=True)
    times = [time for time, *_ in replayed(sharing).pieces]
    assert times[0] > 0.05, "the first piece gives it away"
    assert times[-1] == pytest.approx(5.0)
    assert max(late - early for early, late in pairwise(times)) < 0.2


def test_a_rule_that_does_not_share_is_never_paced(config: Any) -> None:
    config(cache_paced_replay=True)
    assert replayed("private").pieces[-1][0] < 0.6


@pytest.mark.parametrize(
    ("answer", "took_ms", "lasts_s"),
    [("x" * 500, 0.0, 5.0), ("Yes.", 900.0, 0.9), (TEXT, 1e9, LONGEST_PACED_S)],
)
def test_unknown_short_and_endless_times_are_paced_within_reason(
    config: Any, answer: str, took_ms: float, lasts_s: float
) -> None:
    config(cache_paced_replay=True)
    assert replayed("public", answer, took_ms).pieces[-1][0] == pytest.approx(lasts_s)
