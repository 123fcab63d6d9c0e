"""Conversation heads: where the KV of a conversation's last turn lies, the private partial tail included.

A head is soft. It holds no reference, so it never keeps a block from a request that needs one; when a block is
evicted the head is cut before it. Knows blocks by number and the token ids they hold; compares ids on every match.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

# Heads cut down to blocks they share with others cost no KV, only this table; the oldest go first.
MAX_HEADS = 10_000


@dataclass(frozen=True, slots=True)
class Head:
    """`blocks` hold the KV of `token_ids`; the last block may be filled in part, or beyond the ids."""

    salt: bytes
    token_ids: np.ndarray  # int64
    blocks: tuple[int, ...]


class Conversations:
    """Heads by conversation key, and who holds which block."""

    def __init__(self, block_tokens: int) -> None:
        self._block_tokens = block_tokens
        self._heads: OrderedDict[bytes, Head] = OrderedDict()
        self._holders: dict[int, set[bytes]] = {}

    def __len__(self) -> int:
        return len(self._heads)

    def holders(self, block: int) -> frozenset[bytes]:
        return frozenset(self._holders.get(block, ()))

    def get(self, key: bytes, salt: bytes) -> Head | None:
        head = self._heads.get(key)
        return head if head is not None and head.salt == salt else None

    def match(self, key: bytes, salt: bytes, token_ids: Sequence[int], limit: int) -> int:
        """How many leading tokens of `token_ids`, at most `limit`, the head holds."""
        head = self.get(key, salt)
        if head is None:
            return 0
        self._heads.move_to_end(key)
        return common_prefix(head.token_ids, token_ids, limit)

    def keep(self, key: bytes, head: Head) -> set[int]:
        """Point the conversation at `head`; gives blocks that no head holds any more."""
        dropped = self.drop(key)
        self._heads[key] = head
        for block in head.blocks:
            self._holders.setdefault(block, set()).add(key)
        while len(self._heads) > MAX_HEADS:
            dropped |= self.drop(next(iter(self._heads)))
        return {block for block in dropped if block not in self._holders}

    def drop(self, key: bytes) -> set[int]:
        """Forget a head; gives blocks that no head holds any more."""
        head = self._heads.pop(key, None)
        return set() if head is None else self._let_go(key, head.blocks)

    def cut_before(self, block: int) -> set[int]:
        """The content of `block` goes: cut every head before it; gives other blocks that no head holds any more."""
        dropped: set[int] = set()
        for key in self.holders(block):
            head = self._heads[key]
            kept = head.blocks.index(block)
            dropped |= self._let_go(key, head.blocks[kept:])
            if kept:
                ids = head.token_ids[: kept * self._block_tokens]
                self._heads[key] = Head(head.salt, ids, head.blocks[:kept])
            else:
                del self._heads[key]
        return dropped - {block}

    def _let_go(self, key: bytes, blocks: Sequence[int]) -> set[int]:
        dropped = set()
        for block in blocks:
            holders = self._holders[block]
            holders.discard(key)
            if not holders:
                del self._holders[block]
                dropped.add(block)
        return dropped


def common_prefix(first: np.ndarray, second: Sequence[int], limit: int) -> int:
    """Length of the common beginning of both, at most `limit`."""
    size = min(len(first), len(second), limit)
    if size <= 0:
        return 0
    differs = first[:size] != np.asarray(second[:size], dtype=np.int64)
    return int(differs.argmax()) if differs.any() else size
