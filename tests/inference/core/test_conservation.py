"""No block is lost and none is shared by mistake, whatever comes: every step is audited block by block."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from inference.core.kv_cache import KvCache
from inference.core.messages import Admit, Cancel, Command, Forget
from inference.core.retention import Hold
from tests.inference.core.driver import admit
from tests.inference.core.fakes import expected, make_fake_core
from tests.inference.core.kv_turns import make_kv, start, turn


class Visitors:
    """Requests of a few conversations that go on, fork, go back, regenerate and are cut short."""

    def __init__(self, source: random.Random) -> None:
        self._source = source
        self._histories: dict[bytes, list[list[int]]] = {key: [[]] for key in (b"a", b"b", b"c", b"d", b"")}

    def next_request(self) -> Admit:
        source = self._source
        key = source.choice(list(self._histories))
        history = source.choice(self._histories[key])[: source.choice([8, 20, 50])]
        if source.random() < 0.3:
            history = history[: source.randrange(len(history) + 1)]  # an earlier turn is edited
        new = [source.randrange(50) for _ in range(source.randint(1, 12))]
        return admit(
            [*history, *new],
            max_tokens=source.choice([0, 1, 3, 8, 20]),
            conversation=key,
            priority=source.randint(-1, 1),
            is_background=source.random() < 0.05,
        )

    def remember(self, request: Admit, answer: list[int]) -> None:
        branches = self._histories[request.conversation]
        branches.append([*request.prompt_ids, *answer])
        del branches[:-4]


def test_two_thousand_mixed_requests_leave_nothing_behind_and_answer_like_alone() -> None:
    """Aborts, forks, preemptions and forgets at once, over slabs that come and go; each step is audited."""
    source = random.Random(5)
    core = make_fake_core(num_blocks=36, max_batch=5, step_tokens=24)
    visitors, requests, seen = Visitors(source), [], Counter[str]()
    live: list[Admit] = []
    for number in range(2000):
        request = visitors.next_request()
        requests.append(request)
        live.append(request)
        commands: list[Command] = [request]
        if source.random() < 0.3:
            commands.append(Cancel(source.choice(live).id, "cancelled", source.choice([-1, 0, 2])))
        if number % 40 == 0:
            commands.append(Forget(source.choice([b"a", b"b", b"c", b"d"])))
        if number % 100 == 99:
            core.driver.run()
        stats = core.driver.step(*commands).stats
        seen.update(name for name in ("closed", "superseded", "idle") if getattr(stats, f"blocks_{name}"))
        for one in [one for one in live if one.id in core.driver.finished]:
            visitors.remember(one, core.driver.ids(one))
            live.remove(one)
    core.driver.run()
    stats = core.driver.loop.stats()
    assert (stats.blocks_used, stats.running, stats.waiting) == (0, 0, 0)
    assert len(core.driver.finished) == 2000
    for request in requests:
        ids = core.driver.ids(request)
        assert ids == expected(request.prompt_ids, len(ids))
    assert stats.preemptions and stats.evicted_blocks and stats.forgotten_blocks
    assert stats.reused_head_tokens > stats.reused_prefix_tokens > 0
    assert set(seen) == {"closed", "superseded", "idle"}
    for key in (b"a", b"b", b"c", b"d"):
        core.driver.step(Forget(key))
    assert len(core.kv.kept.conversations) == core.kv.kept.conversations.num_heads == 0


def test_the_classes_together_are_all_that_is_cached() -> None:
    core = make_fake_core(num_blocks=30)
    source = random.Random(11)
    visitors = Visitors(source)
    for _ in range(200):
        request = visitors.next_request()
        core.driver.run(request)
        visitors.remember(request, core.driver.ids(request))
        stats = core.driver.loop.stats()
        names = ("closed", "superseded", "stale", "idle", "active", "shared")
        assert sum(getattr(stats, f"blocks_{name}") for name in names) == stats.blocks_cached


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
