"""Conversations: where the KV of their last turns lies, branch by branch, and which blocks they ever reached.

A conversation has a head per branch: the token ids whose KV is kept and the blocks that hold it, the private partial
tail included. The newest is its tip, the others are superseded. Heads are soft: they hold no reference, so they
never keep a block from a request that needs one; when a block is evicted they are cut before it. Knows blocks by
number and the token ids they hold; compares ids on every match.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from inference.core.retention import Hold

# Branches beyond this are dropped, the one used longest ago first: regenerating makes one each time.
MAX_BRANCHES = 8
# Heads cut down to blocks they share with others cost no KV, only these tables; the oldest conversations go first.
MAX_CONVERSATIONS = 10_000


@dataclass(eq=False, slots=True)
class Head:
    """`blocks` hold the KV of `token_ids` (int64); the last block may be filled in part, or beyond the ids."""

    token_ids: np.ndarray
    blocks: list[int]

    def begins(self, ids: np.ndarray) -> bool:
        """Whether `ids` go on from this head, or equal it."""
        return common_prefix(self.token_ids, ids, len(ids)) == len(self.token_ids)


@dataclass(eq=False, slots=True)
class Conversation:
    """Everything that is known of one conversation here."""

    key: bytes
    salt: bytes
    heads: list[Head] = field(default_factory=list)  # the one used longest ago first
    tip: Head | None = None
    reached: set[int] = field(default_factory=set)
    num_sequences: int = 0  # that hold or held blocks and have not ended
    is_closed: bool = False


@dataclass(slots=True)
class _Reach:
    """Who can reach a block. `depth` is its place in the chain."""

    depth: int
    conversations: set[Conversation] = field(default_factory=set)
    is_common: bool = False  # also by somebody without a conversation, or it is the operator's
    heads: set[Head] = field(default_factory=set)
    num_tips: int = 0


class Conversations:
    """The conversations by key, and who reaches which block. A block without content has no reach."""

    def __init__(self, block_tokens: int) -> None:
        self._block_tokens = block_tokens
        self._table: OrderedDict[bytes, Conversation] = OrderedDict()
        self._blocks: dict[int, _Reach] = {}
        self._owner: dict[Head, Conversation] = {}

    def __len__(self) -> int:
        return len(self._table)

    @property
    def num_heads(self) -> int:
        return len(self._owner)

    @property
    def num_blocks(self) -> int:
        """Blocks that somebody reached."""
        return len(self._blocks)

    # --- conversations

    def find(self, key: bytes, salt: bytes) -> Conversation | None:
        conversation = self._table.get(key)
        return conversation if conversation is not None and conversation.salt == salt else None

    def keys_of(self, salt: bytes) -> list[bytes]:
        """The open conversations of one user."""
        return [key for key, conversation in self._table.items() if conversation.salt == salt]

    def enter(self, key: bytes, salt: bytes, *, is_closed: bool) -> Conversation:
        """The conversation that a sequence belongs to; a closed one is forgotten before its first sequence started.

        A key that somebody else uses names two conversations, and only the first is found by it. Call `surplus`
        afterwards: too many may be open now.
        """
        conversation = self.find(key, salt)
        if is_closed or conversation is None:
            conversation = Conversation(key, salt, is_closed=is_closed or key in self._table)
        if not conversation.is_closed:
            self._table[key] = conversation
            self._table.move_to_end(key)
        conversation.num_sequences += 1
        return conversation

    def exit(self, conversation: Conversation) -> bool:
        """A sequence has ended; True when it was the last."""
        conversation.num_sequences -= 1
        self._remove_if_empty(conversation)
        return not conversation.num_sequences

    def surplus(self) -> list[bytes]:
        """Keys of the conversations that were used longest ago, as many as are too many."""
        num_heads, num_open, keys = self.num_heads, len(self), []
        for key, conversation in self._table.items():
            if max(num_heads, num_open) <= MAX_CONVERSATIONS:
                break
            keys.append(key)
            num_heads -= len(conversation.heads)
            num_open -= 1
        return keys

    def close(self, key: bytes) -> Conversation | None:
        """Drop the heads of a conversation and forget its key; what it reached stays known until `leave`."""
        conversation = self._table.pop(key, None)
        if conversation is not None:
            conversation.is_closed = True
            for head in list(conversation.heads):
                self._drop(head)
        return conversation

    def leave(self, conversation: Conversation) -> set[int]:
        """A closed conversation whose last sequence ended reaches nothing; gives what it reached, or reached alone."""
        blocks, conversation.reached = conversation.reached, set()
        for block in blocks:
            self._blocks[block].conversations.discard(conversation)
        return blocks

    # --- heads

    def best_head(self, conversation: Conversation, ids: np.ndarray, limit: int) -> tuple[Head | None, int]:
        """The head with the longest common beginning with `ids`, at most `limit`, and its length."""
        best, longest = None, 0
        for head in reversed(conversation.heads):  # of equals the newest
            length = common_prefix(head.token_ids, ids, limit)
            if length > longest:
                best, longest = head, length
        return best, longest

    def keep(self, conversation: Conversation, ids: np.ndarray, blocks: Sequence[int]) -> set[int]:
        """Make the KV of `ids` the tip; gives the blocks that something else holds now.

        A head that `ids` go on from is replaced; one that goes on from `ids` is the tip itself.
        """
        before = conversation.tip
        tip = next((head for head in reversed(conversation.heads) if _begins(ids, head)), None)
        changed: set[int] = set()
        if tip is None:
            for head in [head for head in conversation.heads if head.begins(ids)]:
                changed |= self._drop(head)
            tip = self._add(conversation, Head(ids, list(blocks)))
        changed |= self._set_tip(conversation, tip)
        if before is not None:
            changed.update(before.blocks)
        while len(conversation.heads) > MAX_BRANCHES:
            changed |= self._drop(conversation.heads[0])
        return changed

    def cut_before(self, block: int) -> set[int]:
        """The content of `block` goes: cut every head before it; gives the blocks that were cut off."""
        changed: set[int] = set()
        for head in list(self._reach_of(block).heads):
            is_tip = self._owner[head].tip is head
            while True:
                last = head.blocks.pop()
                self._let_go(head, last, is_tip=is_tip)
                changed.add(last)
                if last == block:
                    break
            head.token_ids = head.token_ids[: len(head.blocks) * self._block_tokens]
            if not head.blocks:
                self._drop(head)
        return changed

    # --- blocks

    def reach(self, conversation: Conversation | None, blocks: Iterable[int], start: int) -> None:
        """A sequence of this conversation (None: of none) holds `blocks`, the first at place `start` of its chain."""
        for depth, block in enumerate(blocks, start):
            reach = self._blocks.setdefault(block, _Reach(depth))
            if conversation is None:
                reach.is_common = True
            else:
                reach.conversations.add(conversation)
                conversation.reached.add(block)

    def lose(self, block: int) -> None:
        """The content of `block` is gone."""
        reach = self._blocks.pop(block)
        assert not reach.heads, "heads are cut before a block whose content goes"
        for conversation in reach.conversations:
            conversation.reached.discard(block)
            self._remove_if_empty(conversation)

    def hold(self, block: int) -> Hold | None:
        """The best of those who can reach a block; None when nobody can."""
        reach = self._reach_of(block)
        if reach.num_tips:
            return Hold.HEAD
        if reach.is_common:
            return Hold.CONTENT
        if any(not conversation.is_closed for conversation in reach.conversations):
            return Hold.SUPERSEDED
        return Hold.CLOSED if reach.conversations else None

    def has_head(self, block: int) -> bool:
        return bool(self._reach_of(block).heads)

    def is_only_head(self, block: int, head: Head) -> bool:
        return self._reach_of(block).heads == {head}

    def reached_by(self, block: int) -> tuple[bytes, ...]:
        """Keys of the conversations that ever reached a block and were not forgotten since."""
        return tuple(c.key for c in self._reach_of(block).conversations if not c.is_closed)

    def depth(self, block: int) -> int:
        return self._reach_of(block).depth

    def problems(self) -> list[str]:
        """Violations between conversations, heads and blocks; empty when all is well."""
        found = []
        held = {(head, block) for head in self._owner for block in head.blocks}
        if held != {(head, block) for block, reach in self._blocks.items() for head in reach.heads}:
            found.append("heads and blocks disagree about who holds what")
        reached = {(c, block) for block, reach in self._blocks.items() for c in reach.conversations}
        if any((conversation, block) not in reached for conversation, block in self._open_reach()):
            found.append("a conversation reached a block that does not know it")
        for block, reach in self._blocks.items():
            if reach.num_tips != sum(1 for head in reach.heads if self._owner[head].tip is head):
                found.append(f"block {block} counts its newest heads wrong")
        return found

    # --- details

    def _remove_if_empty(self, conversation: Conversation) -> None:
        is_empty = not (conversation.reached or conversation.num_sequences)
        if is_empty and not conversation.is_closed:
            del self._table[conversation.key]

    def _open_reach(self) -> list[tuple[Conversation, int]]:
        return [(c, block) for c in self._table.values() for block in c.reached]

    def _reach_of(self, block: int) -> _Reach:
        return self._blocks[block]

    def _add(self, conversation: Conversation, head: Head) -> Head:
        self._owner[head] = conversation
        for block in head.blocks:
            self._blocks[block].heads.add(head)
        conversation.heads.append(head)
        return head

    def _set_tip(self, conversation: Conversation, tip: Head) -> set[int]:
        if conversation.tip is not None:
            self._count_tip(conversation.tip, -1)
        self._count_tip(tip, 1)
        conversation.tip = tip
        conversation.heads.remove(tip)
        conversation.heads.append(tip)
        return set(tip.blocks)

    def _count_tip(self, head: Head, change: int) -> None:
        for block in head.blocks:
            self._blocks[block].num_tips += change

    def _drop(self, head: Head) -> set[int]:
        conversation = self._owner.pop(head)
        conversation.heads.remove(head)
        is_tip = conversation.tip is head
        for block in head.blocks:
            self._let_go(head, block, is_tip=is_tip)
        if is_tip:
            conversation.tip = None
        return set(head.blocks)

    def _let_go(self, head: Head, block: int, *, is_tip: bool) -> None:
        reach = self._blocks[block]
        reach.heads.discard(head)
        reach.num_tips -= is_tip


def _begins(ids: np.ndarray, head: Head) -> bool:
    return len(ids) <= len(head.token_ids) and common_prefix(head.token_ids, ids, len(ids)) == len(ids)


def common_prefix(first: np.ndarray, second: np.ndarray, limit: int) -> int:
    """Length of the common beginning of both, at most `limit`."""
    size = min(len(first), len(second), limit)
    if size <= 0:
        return 0
    differs = first[:size] != second[:size]
    return int(differs.argmax()) if differs.any() else size
