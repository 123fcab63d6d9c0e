"""Who gets which KV blocks: what is reused, what is taken, what is kept after a turn.

Joins the pool (`blocks`), the content index (`prefix`) and the conversation heads. Knows no tensors: copying and
wiping a block are calls that its owner passes in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from inference.core.blocks import BlockPool
from inference.core.conversations import Conversations, Head
from inference.core.prefix import PrefixCache
from inference.core.sequence import Sequence


@dataclass(frozen=True, slots=True)
class BlockActions:
    """What must happen to the tensors."""

    copy: Callable[[int, int], None]  # (source, target)
    wipe: Callable[[int], None]


@dataclass(slots=True)
class _Match:
    """What a sequence may reuse: `blocks` as they are, and part of `copied_from` as a private copy."""

    blocks: list[int]
    num_tokens: int
    head_tokens: int
    copied_from: int | None = None

    def without_copy(self, block_tokens: int) -> _Match:
        num_tokens = len(self.blocks) * block_tokens
        return _Match(self.blocks, num_tokens, num_tokens)


class KvCache:
    """Blocks of every sequence of one core."""

    def __init__(self, pool_blocks: int, prefix: PrefixCache, actions: BlockActions) -> None:
        self.block_tokens = prefix.block_tokens
        self.prefix = prefix
        self.conversations = Conversations(prefix.block_tokens)
        self.pool = BlockPool(pool_blocks, on_evict=self._evict)
        self.num_reused_head = 0  # tokens, counted when a sequence is first admitted
        self.num_reused_prefix = 0
        self._actions = actions

    # --- a sequence comes and grows

    def acquire(self, sequence: Sequence, now: float, reserve: int = 0) -> bool:
        """Give a waiting sequence blocks for all its tokens, reusing what is cached.

        False, with nothing changed, when that would leave fewer than `reserve` blocks for the others' growth.
        """
        match = self._match(sequence)
        taken = self._reserve(sequence, match, reserve)
        if not taken and match.copied_from is not None:
            # While it is copied the source takes a block of its own; in a full pool that may be the one too many.
            match = match.without_copy(self.block_tokens)
            taken = self._reserve(sequence, match, reserve)
        if not taken:
            return False
        sequence.charge_blocks(now)
        sequence.blocks = list(match.blocks)
        self._take(sequence, self._num_new(sequence, match))
        if match.copied_from is not None:
            self._actions.copy(match.copied_from, sequence.blocks[len(match.blocks)])
            self._release([match.copied_from])
        self._account(sequence, match)
        return True

    def extend(self, sequence: Sequence, now: float) -> bool:
        """Make room for the KV of one more token; False when every block is used."""
        missing = self.num_blocks_for(sequence.num_computed + 1) - len(sequence.blocks)
        if missing <= 0:
            return True
        if missing > self.pool.num_available:
            return False
        sequence.charge_blocks(now)
        self._take(sequence, missing)
        return True

    def publish(self, sequence: Sequence) -> None:
        """Make blocks that the last forward filled findable. Equal content that is known already is shared."""
        size = self.block_tokens
        while (sequence.num_published + 1) * size <= sequence.num_computed:
            index = sequence.num_published
            own = sequence.blocks[index]
            parent = sequence.blocks[index - 1] if index else None
            ids = tuple(sequence.token_ids[index * size : (index + 1) * size])
            holder = self.prefix.publish(sequence.admit.salt, parent, ids, own)
            if holder is None:
                return
            if holder != own:
                self.pool.retain(holder)
                sequence.blocks[index] = holder
                self._release([own])
            sequence.num_published += 1

    # --- a sequence leaves

    def finish(self, sequence: Sequence, now: float, keep_tokens: int = -1) -> None:
        """Release a sequence; its conversation keeps prompt + `keep_tokens` generated tokens (-1: all) for next time.

        The KV of the last sampled token was never written, so it is not kept.
        """
        num_kept = sequence.num_computed
        if keep_tokens >= 0:
            num_kept = min(num_kept, sequence.num_prompt + keep_tokens)
        if sequence.admit.conversation and num_kept and not sequence.is_forgotten:
            self._keep_head(sequence, num_kept)
        blocks = self._give_up(sequence, now)
        if sequence.is_forgotten:
            self._clear(blocks)

    def preempt(self, sequence: Sequence, now: float) -> None:
        """Take every block back. Published ones stay cached and may be found again on the way back in."""
        self._give_up(sequence, now)
        sequence.num_computed = 0

    def discard(self, sequence: Sequence, now: float) -> None:
        """Release a sequence whose numbers can't be trusted: what it wrote is unpublished and wiped.

        Stale NaN would reach the next owner: a masked position still multiplies 0 x NaN.
        """
        first_own = sequence.num_borrowed // self.block_tokens
        for block in self._give_up(sequence, now)[first_own:]:
            if self.pool.references(block):
                continue
            self._unreachable(block)
            self._actions.wipe(block)

    def forget(self, conversation: bytes) -> int:
        """Drop a conversation's head and the blocks only it reached; gives the number of blocks freed."""
        return self._clear(sorted(self.conversations.drop(conversation)))

    def clear(self) -> None:
        """Drop everything that is cached and start counting at zero."""
        for block in self.pool.cached_blocks():
            if self.pool.is_cached(block):  # another one's loss may have freed it already
                self._unreachable(block)
        self.num_reused_head = self.num_reused_prefix = self.pool.num_evicted = 0

    def num_reusable(self, sequence: Sequence) -> int:
        """How many leading tokens a waiting sequence would not have to compute if it got its blocks now."""
        return self._match(sequence).num_tokens

    def num_blocks_for(self, num_tokens: int) -> int:
        return -(-num_tokens // self.block_tokens)

    def problems(self) -> list[str]:
        return self.pool.problems()

    # --- details

    def _match(self, sequence: Sequence) -> _Match:
        """The longest reusable beginning. At least the last token is left to compute, for its logits."""
        salt, key, ids = sequence.admit.salt, sequence.admit.conversation, sequence.token_ids
        limit, size = len(ids) - 1, self.block_tokens
        num_head = self.conversations.match(key, salt, ids, limit) if key else 0
        head = self.conversations.get(key, salt) if num_head else None
        full, rest = divmod(num_head, size)
        blocks = list(head.blocks[:full]) if head else []
        further = self.prefix.match(salt, ids, blocks, limit)
        if further or head is None or not rest:
            num_tokens = (full + len(further)) * size
            return _Match([*blocks, *further], num_tokens, full * size)
        tail = head.blocks[full]
        if num_head == len(head.token_ids) and self._is_private(tail, key):
            return _Match([*blocks, tail], num_head, num_head)
        return _Match(blocks, num_head, num_head, copied_from=tail)

    def _reserve(self, sequence: Sequence, match: _Match, reserve: int) -> bool:
        """Hold what is reused, so that taking new blocks can't evict it; False when the new ones don't fit."""
        borrowed = match.blocks if match.copied_from is None else [*match.blocks, match.copied_from]
        for block in borrowed:
            self.pool.retain(block)
        if self._num_new(sequence, match) <= self.pool.num_available - reserve:
            return True
        self._release(borrowed)
        return False

    def _num_new(self, sequence: Sequence, match: _Match) -> int:
        return self.num_blocks_for(len(sequence.token_ids)) - len(match.blocks)

    def _is_private(self, block: int, conversation: bytes) -> bool:
        """Whether a sequence of this conversation may write on into the block itself instead of a copy."""
        is_idle = self.pool.references(block) == 0 and block not in self.prefix
        return is_idle and self.conversations.holders(block) == {conversation}

    def _account(self, sequence: Sequence, match: _Match) -> None:
        is_first_time = sequence.prompt_done == 0
        sequence.num_computed = sequence.num_borrowed = match.num_tokens
        sequence.num_published = sum(1 for block in match.blocks if block in self.prefix)
        if is_first_time:
            sequence.reused_head = match.head_tokens
            sequence.reused_prefix = match.num_tokens - match.head_tokens
            self.num_reused_head += sequence.reused_head
            self.num_reused_prefix += sequence.reused_prefix
        sequence.advance(0)

    def _take(self, sequence: Sequence, num_blocks: int) -> None:
        sequence.blocks.extend(self.pool.take() for _ in range(num_blocks))
        sequence.peak_blocks = max(sequence.peak_blocks, len(sequence.blocks))

    def _keep_head(self, sequence: Sequence, num_kept: int) -> None:
        key, salt = sequence.admit.conversation, sequence.admit.salt
        ids = np.asarray(sequence.token_ids[:num_kept], dtype=np.int64)
        known = self.conversations.get(key, salt)
        if (
            known is not None
            and len(known.token_ids) >= num_kept
            and (known.token_ids[:num_kept] == ids).all()
        ):
            return  # cancelled before it got further than the turn before
        blocks = tuple(sequence.blocks[: self.num_blocks_for(num_kept)])
        for block in self.conversations.keep(key, Head(salt, ids, blocks)):
            self._free_if_lost(block)

    def _give_up(self, sequence: Sequence, now: float) -> list[int]:
        sequence.charge_blocks(now)
        blocks, sequence.blocks, sequence.num_published = sequence.blocks, [], 0
        self._release(blocks)
        return blocks

    def _release(self, blocks: list[int]) -> None:
        for block in reversed(blocks):  # leaf first
            self.pool.release(block, is_reusable=self._is_reachable(block))

    def _is_reachable(self, block: int) -> bool:
        return block in self.prefix or bool(self.conversations.holders(block))

    def _clear(self, blocks: list[int]) -> int:
        """Free the content of idle blocks that no head holds."""
        cleared = [b for b in blocks if not self.conversations.holders(b) and self.pool.is_cached(b)]
        for block in cleared:
            self._unreachable(block)
        return len(cleared)

    def _evict(self, block: int) -> None:
        self.prefix.forget(block)
        for lost in self.conversations.cut_before(block):
            self._free_if_lost(lost)

    def _unreachable(self, block: int) -> None:
        self._evict(block)
        if self.pool.is_cached(block):
            self.pool.uncache(block)

    def _free_if_lost(self, block: int) -> None:
        if self.pool.is_cached(block) and not self._is_reachable(block):
            self.pool.uncache(block)
