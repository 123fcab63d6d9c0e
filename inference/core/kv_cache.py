"""Which blocks a sequence gets: what it reuses, what it takes, what is kept when it leaves.

Knows sequences. What is kept and who can reach it is `kept`; how much of a prompt that covers is `reuse`. Knows no
tensors: what must happen to them are calls that their owner passes in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from inference.core.kept import KeptBlocks
from inference.core.prefix import PrefixCache, Salts
from inference.core.retention import Lifetimes
from inference.core.reuse import Match, Source, find_match
from inference.core.sequence import Sequence
from inference.core.slabs import Slabs


@dataclass(frozen=True, slots=True)
class BlockActions:
    """What must happen to the tensors."""

    copy: Callable[[int, int], None]  # (source, target)
    wipe: Callable[[int], None]
    give_back: Callable[[range], None] | None = None  # memory of neighbours; None: it was taken for good


class KvCache:
    """Blocks of every sequence of one core."""

    def __init__(
        self,
        pool_blocks: int,
        prefix: PrefixCache,
        actions: BlockActions,
        *,
        lifetimes: Lifetimes = Lifetimes(),  # noqa: B008  # frozen
        slab_blocks: int = 0,
    ) -> None:
        """`slab_blocks` 0 makes one slab of all."""
        slabs = Slabs(pool_blocks, slab_blocks or pool_blocks, is_elastic=actions.give_back is not None)
        self.block_tokens = prefix.block_tokens
        self.prefix = prefix
        self.kept = KeptBlocks(slabs, prefix, lifetimes)
        self.pool = self.kept.pool
        self.num_reused = dict.fromkeys(Source, 0)  # tokens, counted when a sequence is first admitted
        self.num_forgotten = 0  # blocks
        self._actions = actions

    # --- a sequence comes and grows

    def acquire(self, sequence: Sequence, now: float, reserve: int = 0) -> bool:
        """Give a waiting sequence blocks for all its tokens, reusing what is cached.

        False, with nothing changed, when that would leave fewer than `reserve` blocks for the others' growth.
        """
        self.pool.age(now)
        match = self.match(sequence)
        taken = self._reserve(sequence, match, reserve)
        if not taken and match.copied_from is not None:
            # While it is copied the source takes a block of its own; in a full pool that may be the one too many.
            match = match.without_copy(self.block_tokens)
            taken = self._reserve(sequence, match, reserve)
        if not taken:
            return False
        sequence.charge_blocks(now)
        self._enter(sequence, match)
        self._take(sequence, self._num_new(sequence, match))
        if match.copied_from is not None:
            self._actions.copy(match.copied_from, sequence.blocks[len(match.blocks)])
            self.kept.release([match.copied_from])
        self._account(sequence, match)
        return True

    def extend(self, sequence: Sequence, now: float, num_tokens: int = 1, reserve: int = 0) -> bool:
        """Make room for the KV of so many more tokens.

        False, with nothing changed, when that would leave fewer than `reserve` blocks.
        """
        missing = self.num_blocks_for(sequence.num_computed + num_tokens) - len(sequence.blocks)
        if missing <= 0:
            return True
        if missing > self.pool.num_available - reserve:
            return False
        self.pool.age(now)
        sequence.charge_blocks(now)
        self._take(sequence, missing)
        return True

    def room(self, sequence: Sequence) -> int:
        """How many more tokens' KV the blocks of a sequence can hold."""
        return len(sequence.blocks) * self.block_tokens - sequence.num_computed

    def publish(self, sequence: Sequence) -> None:
        """Make blocks that the last forward filled findable. Equal content that is known already is shared."""
        size = self.block_tokens
        while (sequence.num_published + 1) * size <= sequence.num_computed:
            index = sequence.num_published
            own = sequence.blocks[index]
            parent = sequence.blocks[index - 1] if index else None
            ids = tuple(sequence.token_ids[index * size : (index + 1) * size])
            holder = self.prefix.publish(sequence.salts.at(index), parent, ids, own)
            if holder is None:
                return
            if holder == own and sequence.is_warm_up:
                self.kept.warmed.add(own)
            if holder != own:
                self.pool.retain(holder)
                self._reach(sequence, [holder], index)
                sequence.blocks[index] = holder
                self.kept.release([own])
            elif self.kept.is_shared(own):
                self.kept.conversations.reach(
                    None, [own], index
                )  # the operator's: no conversation takes it along
            sequence.num_published += 1

    # --- a sequence leaves

    def finish(self, sequence: Sequence, now: float, keep_tokens: int = -1) -> None:
        """Release a sequence; its conversation keeps prompt + `keep_tokens` generated tokens (-1: all) for next time.

        The KV of the last sampled token was never written, so it is not kept.
        """
        num_kept = sequence.num_computed
        if keep_tokens >= 0:
            num_kept = min(num_kept, sequence.num_prompt + keep_tokens)
        self._give_up(sequence, now, num_kept)
        self._exit(sequence)

    def preempt(self, sequence: Sequence, now: float) -> None:
        """Take every block back. They stay cached, and what is left of them is found again on the way back in."""
        self._give_up(sequence, now, sequence.num_computed)
        sequence.num_computed = 0

    def discard(self, sequence: Sequence, now: float) -> None:
        """Release a sequence whose numbers can't be trusted: what it wrote is unpublished and wiped.

        Stale NaN would reach the next owner: a masked position still multiplies 0 x NaN.
        """
        own = sequence.blocks[sequence.num_borrowed // self.block_tokens :]
        self._give_up(sequence, now, num_kept=0)
        for block in own:
            if self.pool.references(block):
                continue
            if self.pool.is_cached(block):
                self.kept.drop(block)
            self._actions.wipe(block)
        self._exit(sequence)

    def forget(self, conversation: bytes) -> None:
        """Drop a conversation's heads and every block that only it ever reached; what it still runs, at its end."""
        self.num_forgotten += self.kept.close(conversation)

    def forget_user(self, salt: bytes) -> None:
        """Drop all that a user left behind and no sequence holds; what one holds of a conversation goes at its end."""
        self.num_forgotten += self.kept.close_all(salt)

    def clear(self) -> None:
        """Drop everything that is cached and start counting at zero."""
        self.kept.clear()
        self.num_reused = dict.fromkeys(Source, 0)
        self.num_forgotten = self.pool.num_evicted = 0

    # --- between steps

    def age(self, now: float) -> None:
        """It is `now`: what was not used for long changes its class."""
        self.pool.age(now)

    def give_back(self) -> None:
        """Return the memory of slabs that hold nothing."""
        for blocks in self.pool.give_back_slabs():
            assert self._actions.give_back is not None
            self._actions.give_back(blocks)

    def match(self, sequence: Sequence) -> Match:
        """What a waiting sequence would reuse if it got its blocks now."""
        conversation = sequence.conversation
        if conversation is None and not sequence.is_forgotten:
            conversation = self.kept.conversations.find(sequence.admit.conversation, sequence.admit.salt)
        match = find_match(self.kept, conversation, sequence.salts, sequence.token_ids)
        if not sequence.salts.num_shared_blocks:
            return match
        own = find_match(self.kept, conversation, Salts(sequence.salts.own), sequence.token_ids)
        return max(match, own, key=lambda one: one.num_tokens)  # of equals the first

    def salts(self, sequence: Sequence, match: Match) -> Salts:
        """Whose the blocks of a sequence will be: a chain that began as its owner's own stays so."""
        salts = sequence.salts
        if match.blocks and match.blocks[0] in self.prefix:
            begins_shared = self.prefix.published(match.blocks[0]).salt == salts.shared
            return salts if begins_shared else Salts(salts.own)
        return salts

    def num_reusable(self, sequence: Sequence) -> int:
        """How many leading tokens a waiting sequence would not have to compute if it got its blocks now."""
        return self.match(sequence).num_tokens

    def num_blocks_for(self, num_tokens: int) -> int:
        return -(-num_tokens // self.block_tokens)

    def slack(self, running: Iterable[Sequence]) -> float:
        """The part of the token slots in used blocks that hold nothing. Only the last blocks of a sequence have any."""
        unfilled = sum(len(s.blocks) * self.block_tokens - s.num_computed for s in running)
        return unfilled / (self.pool.num_used * self.block_tokens) if self.pool.num_used else 0.0

    def imbalance(self) -> list[str]:
        """Whether free + cached + used == total; empty when it is."""
        return self.pool.imbalance()

    def problems(self) -> list[str]:
        """Every violation of what classes, slabs, heads and holders promise, block by block; empty when all is well."""
        return self.kept.problems()

    # --- details

    def _reserve(self, sequence: Sequence, match: Match, reserve: int) -> bool:
        """Hold what is reused, so that taking new blocks can't evict it; False when the new ones don't fit."""
        borrowed = match.blocks if match.copied_from is None else [*match.blocks, match.copied_from]
        for block in borrowed:
            self.pool.retain(block)
        if self._num_new(sequence, match) <= self.pool.num_available - reserve:
            return True
        self.kept.release(borrowed)
        return False

    def _num_new(self, sequence: Sequence, match: Match) -> int:
        return self.num_blocks_for(len(sequence.token_ids)) - len(match.blocks)

    def _enter(self, sequence: Sequence, match: Match) -> None:
        """The sequence holds what it reuses, in the name of its conversation."""
        key, salt = sequence.admit.conversation, sequence.admit.salt
        conversations = self.kept.conversations
        if key and sequence.conversation is None:
            sequence.conversation = conversations.enter(key, salt, is_closed=sequence.is_forgotten)
        sequence.blocks = list(match.blocks)
        sequence.salts = self.salts(sequence, match)
        self._reach(sequence, match.blocks, 0)
        for surplus in conversations.surplus():
            self.kept.close(surplus)

    def _exit(self, sequence: Sequence) -> None:
        conversation, sequence.conversation = sequence.conversation, None
        if conversation is not None:
            self.num_forgotten += self.kept.exit(conversation)

    def _account(self, sequence: Sequence, match: Match) -> None:
        is_first_time = sequence.prompt_done == 0
        sequence.num_computed = sequence.num_borrowed = match.num_tokens
        sequence.num_published = sum(1 for block in match.blocks if block in self.prefix)
        if is_first_time:
            sequence.reused = match.tokens_by_source(self.block_tokens)
            for source, num_tokens in sequence.reused.items():
                self.num_reused[source] += num_tokens
        self.kept.restored.difference_update(match.blocks)
        if not sequence.is_background:
            self.kept.warmed.use(match.blocks)
        sequence.advance(0)

    def _take(self, sequence: Sequence, num_blocks: int) -> None:
        for _ in range(num_blocks):
            block = self.pool.take()
            self._reach(sequence, [block], len(sequence.blocks))
            sequence.blocks.append(block)
        sequence.peak_blocks = max(sequence.peak_blocks, len(sequence.blocks))

    def _reach(self, sequence: Sequence, blocks: list[int], start: int) -> None:
        self.kept.conversations.reach(sequence.conversation, blocks, start)

    def _give_up(self, sequence: Sequence, now: float, num_kept: int) -> None:
        """Release every block; the conversation keeps the first `num_kept` tokens as its newest head."""
        self.pool.age(now)
        sequence.charge_blocks(now)
        changed: set[int] = set()
        conversation = sequence.conversation
        if conversation is not None and num_kept and not conversation.is_closed:
            ids = np.asarray(sequence.token_ids[:num_kept], dtype=np.int64)
            blocks = sequence.blocks[: self.num_blocks_for(num_kept)]
            changed = self.kept.conversations.keep(conversation, ids, blocks)
        blocks, sequence.blocks, sequence.num_published = sequence.blocks, [], 0
        self.kept.release(blocks)
        self.kept.settle(changed)
