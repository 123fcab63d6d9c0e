"""Turns over a KvCache without a loop: who asked what when, and what is cached afterwards."""

from __future__ import annotations

from collections.abc import Sequence as Ids

from inference.core.kv_cache import BlockActions, KvCache
from inference.core.prefix import PrefixCache, Salts
from inference.core.retention import Lifetimes, Retention
from inference.core.sequence import Sequence
from tests.inference.core.driver import admit

SIZE = 4
ACTIVE_S, SOFT_TTL_S = 100.0, 1000.0


def make_kv(num_blocks: int = 64, slab_blocks: int = 8) -> KvCache:
    actions = BlockActions(lambda *_: None, lambda *_: None, lambda *_: None)
    lifetimes = Lifetimes(ACTIVE_S, SOFT_TTL_S)
    prefix = PrefixCache(b"model", SIZE)
    return KvCache(num_blocks, prefix, actions, lifetimes=lifetimes, slab_blocks=slab_blocks)


def start(
    kv: KvCache,
    ids: Ids[int],
    conversation: bytes = b"",
    now: float = 0.0,
    *,
    salt: bytes = b"salt",
    shared: Salts | None = None,
) -> Sequence:
    """A sequence that has read its prompt."""
    sequence = Sequence(admit(ids, conversation=conversation, salt=salt), 1, now)
    sequence.salts = shared or sequence.salts
    assert kv.acquire(sequence, now)
    sequence.advance(sequence.num_uncomputed)
    kv.publish(sequence)
    assert kv.problems() == []
    return sequence


def turn(kv: KvCache, ids: Ids[int], conversation: bytes = b"", now: float = 0.0, **options) -> Sequence:
    """A sequence that has read its prompt and is gone; its conversation keeps all of it."""
    sequence = start(kv, ids, conversation, now, **options)
    kv.finish(sequence, now)
    assert kv.problems() == []
    return sequence


def classes(kv: KvCache) -> dict[str, int]:
    """Number of cached blocks of every class that has some."""
    return {one.name.lower(): num for one, num in kv.pool.cached_by_class().items() if num}


def evict(kv: KvCache, num_blocks: int) -> list[Retention]:
    """Take so many blocks of a full pool for good; gives the classes of those that had to go, in order."""
    assert kv.pool.num_free == 0
    gone: list[Retention] = []
    for _ in range(num_blocks):
        before = kv.pool.cached_by_class()
        block = kv.pool.take()
        kv.kept.conversations.reach(None, [block], 0)
        after = kv.pool.cached_by_class()
        gone += [one for one in Retention if after[one] < before[one]]
        assert kv.problems() == []
    return gone


def fill(kv: KvCache) -> None:
    """Take every free block for good."""
    for _ in range(kv.pool.num_free):
        kv.kept.conversations.reach(None, [kv.pool.take()], 0)
