"""What is cached, used and unused adds up, and the audit that every step of every test passes notices when not."""

from __future__ import annotations

import random

import pytest

from inference.core.kv_cache import KvCache
from inference.core.retention import Hold
from tests.inference.core.driver import admit
from tests.inference.core.fakes import make_fake_core
from tests.inference.core.kv_turns import make_kv, start, turn
from tests.inference.core.visitors import CLASSES, Visitors


def test_the_classes_together_are_all_that_is_cached() -> None:
    core = make_fake_core(num_blocks=30)
    visitors = Visitors(random.Random(11))
    for _ in range(200):
        request = visitors.next_request()
        core.driver.run(request)
        visitors.remember(request, core.driver.ids(request))
        stats = core.driver.loop.stats()
        assert sum(getattr(stats, f"blocks_{name}") for name in CLASSES) == stats.blocks_cached


def test_slack_is_the_part_of_used_blocks_that_holds_nothing() -> None:
    core = make_fake_core()
    assert core.driver.step(admit([1] * 9, max_tokens=9)).stats.kv_slack == pytest.approx(3 / 12)
    assert core.driver.step(admit([1] * 9, max_tokens=9)).stats.kv_slack == pytest.approx(
        (2 + 3) / (2 * 4 + 8)
    )
    core.driver.run()
    assert core.driver.loop.stats().kv_slack == 0.0


def found_by_content(kv: KvCache) -> int:
    return next(block for block in kv.pool.cached_blocks() if kv.pool.hold(block) is Hold.CONTENT)


@pytest.mark.parametrize(
    ("break_it", "told"),
    [
        (lambda kv: kv.pool.take(), "reached"),
        (lambda kv: kv.pool.rehold(kv.pool.cached_blocks()[0], Hold.SHARED), "stands as"),
        (lambda kv: kv.prefix.forget(found_by_content(kv)), "held by None"),
        (lambda kv: setattr(kv.pool, "num_used", 7), "!="),
        (lambda kv: kv.pool._references.__setitem__(kv.pool.cached_blocks()[0], 1), "referenced"),
        (lambda kv: kv.pool._slabs._free[0].append(60), "another slab"),
        (lambda kv: kv.kept.conversations.find(b"talk", b"salt").tip.blocks.pop(), "disagree"),
    ],
    ids=["taken", "class", "content", "count", "reference", "slab", "head"],
)
def test_the_audit_notices(break_it, told: str) -> None:
    kv = make_kv()
    turn(kv, range(10), b"talk")
    turn(kv, range(200, 210))
    start(kv, range(100, 110), b"talk")
    assert kv.problems() == []
    break_it(kv)
    assert told in " ".join(kv.problems())
