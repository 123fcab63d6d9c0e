"""What work costs: which price is in force, and how it is applied. The table is the operator's."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from django.utils import timezone

from chatsite.accounts.ledger.prices import cost_of, price_of
from chatsite.accounts.models import Price
from inference.types import Usage

NOW = timezone.now()
WORK = Usage(
    prompt_tokens=3000,
    reused_head_tokens=1500,
    reused_disk_tokens=500,
    prefilled_tokens=1000,
    generated_tokens=200,
    unseen_tokens=7,
    device_seconds=1.5,
)


def set_price(model: str, per_million: int = 1, days_ago: float = 1) -> Price:
    return Price.objects.create(
        model=model, per_million_generated=per_million, valid_from=NOW - timedelta(days=days_ago)
    )


def test_the_longest_pattern_that_fits_wins_and_of_it_the_newest(db: None) -> None:
    set_price("*")
    set_price("qwen*", days_ago=9)
    newest = set_price("qwen*", per_million=2)
    set_price("qwen*", per_million=3, days_ago=-1)  # not yet
    small, itself = set_price("qwen3-0.6b*"), set_price("qwen3-0.6b")
    found = {model: price_of(model, NOW) for model in ("qwen3-0.6b", "qwen3-0.6b-int8", "qwen2", "smol", "")}
    assert (found["qwen3-0.6b"], found["qwen3-0.6b-int8"], found["qwen2"]) == (itself, small, newest)
    for other in ("smol", ""):
        assert found[other] is not None and found[other].model == "*"
    before = price_of("qwen2", NOW - timedelta(days=5))
    assert before is not None and before.per_million_generated == 1
    assert price_of("qwen2", NOW - timedelta(days=10)) is None


@pytest.mark.parametrize("name", ["%", "q_en", "QWEN", "a" * 200, "q*", "'; --", "模型"])
def test_names_are_names_and_no_patterns(db: None, name: str) -> None:
    set_price("qwen*")
    assert price_of(name, NOW) is None


def test_a_cost_is_exact_and_has_its_parts(db: None) -> None:
    price = Price(
        per_million_prompt=Decimal("0.15"),
        per_million_reused=Decimal("0.075"),
        per_million_generated=Decimal("0.6"),
        per_device_hour=Decimal("2.4"),
    )
    # 1000 x 0.15/M + 2000 x 0.075/M + 200 x 0.6/M + 1.5 s of 2.4 an hour
    assert cost_of(price, WORK) == Decimal("0.00015") + Decimal("0.00015") + Decimal("0.00012") + Decimal(
        "0.001"
    )
    assert cost_of(price, Usage()) == 0 == cost_of(None, WORK)
    assert cost_of(price, Usage(prompt_tokens=99)) == 0  # stopped before it was read
