"""Cases as a file: what comes out goes in again, whole or not at all, and only once."""

from __future__ import annotations

import json

import pytest
from django.db.models import F

from semcache.admin.case_file import MAX_BYTES, UnreadableCases, add_lines, as_lines
from semcache.models import CacheCase
from semcache.quality import cases

pytestmark = pytest.mark.django_db

HIT = {
    "question": "When do you open?", "tenant": "1", "owner": "user:7", "model": "small", "expected": "hit",
    "rule": "Opening hours", "stored_question": "When are you open?", "answer_part": "nine", "note": "Asked daily.",
}  # fmt: skip
MISS = {"question": "今天天气怎么样？", "expected": "miss"}


def lines(*rows: object) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def test_what_comes_out_is_what_went_in() -> None:
    content = lines(HIT, MISS)
    added = add_lines(content)
    assert [case.state for case in added.cases] == ["new", "new"]
    assert as_lines(CacheCase.objects.order_by("pk")).encode() == content
    assert "天气" in as_lines(CacheCase.objects.all())


def test_how_it_went_and_whose_answer_it_was_stays_here() -> None:
    add_lines(lines(HIT))
    CacheCase.objects.update(state="failed", got_rule="secret", generation="0" * 32)
    assert set(json.loads(as_lines(CacheCase.objects.all()))) == set(HIT)


def test_the_same_file_again_adds_nothing_also_with_another_note() -> None:
    add_lines(lines(HIT))
    again = add_lines(b"\xef\xbb\xbf" + lines(HIT | {"note": ""}, MISS, MISS) + b"\n\n")
    assert (len(again.cases), again.num_known) == (1, 2)
    assert CacheCase.objects.filter(definition=F("definition")).count() == 2


@pytest.mark.parametrize(
    ("content", "line", "said"),
    [
        (lines(MISS) + b"{", 2, "JSON"),
        (b"[" * 100_000, 1, "JSON"),
        (lines(MISS, ["a"]), 2, "object of texts"),
        (lines({"question": 7, "expected": "hit"}), 1, "object of texts"),
        (lines(MISS | {"outcome": "miss"}), 1, "unknown: outcome"),
        (lines(MISS | {"generation": "x"}), 1, "unknown: generation"),
        (lines(MISS, {"question": " ", "expected": "hit"}), 2, "question: "),
        (lines({"question": "a", "expected": "maybe"}), 1, "expected: "),
        (lines({"question": "a", "expected": "never"}), 1, "expected: Say which"),
        (lines(MISS | {"stored_question": "a"}), 1, "expected: No stored answer"),
        (lines({"question": "a" * 20_001, "expected": "hit"}), 1, "question: "),
        ("é".encode("latin-1"), 0, "not UTF-8"),
        (b" " * (MAX_BYTES + 1), 0, "too large"),
    ],
)
def test_a_file_with_anything_wrong_is_refused_whole(content: bytes, line: int, said: str) -> None:
    with pytest.raises(UnreadableCases) as refused:
        add_lines(content)
    assert said in str(refused.value)
    assert str(refused.value).startswith(f"Line {line}: ") == bool(line)
    assert CacheCase.objects.count() == 0


def test_there_are_no_more_than_can_be_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("semcache.admin.case_forms.MAX_CASES", 2)
    rows = [{"question": text, "expected": "miss"} for text in "abc"]
    with pytest.raises(UnreadableCases, match="2 cases already"):
        add_lines(lines(*rows))
    add_lines(lines(*rows[:2]))
    assert add_lines(lines(*rows[:2])).num_known == 2


def test_the_limit_is_what_a_run_takes() -> None:
    assert cases.MAX_CASES == 1000
