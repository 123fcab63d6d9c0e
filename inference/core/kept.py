"""What is kept in which block, who can reach it, and what goes when nobody can.

Joins the pool (`blocks`), the content index (`prefix`) and the conversations; keeps the three in step: a block that
nobody can reach is free, and content that goes can be found by nobody. Knows no sequences and no tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from inference.core.blocks import BlockPool
from inference.core.conversations import Conversation, Conversations
from inference.core.prefix import BlockIdentity, PrefixCache
from inference.core.retention import Hold, Lifetimes, Retention
from inference.core.slabs import Slabs
from inference.core.warmed import WarmedBlocks


@dataclass(frozen=True, slots=True)
class Content:
    """A full block that may be known again elsewhere."""

    block: int
    identity: BlockIdentity
    conversations: tuple[bytes, ...]  # keys of those that reached it; when all are forgotten it must be too


class KeptBlocks:
    """The blocks of one core and their content."""

    def __init__(self, slabs: Slabs, prefix: PrefixCache, lifetimes: Lifetimes) -> None:
        self.prefix = prefix
        self.conversations = Conversations(prefix.block_tokens)
        self.pool = BlockPool(slabs, lifetimes, on_evict=self._evict)
        # Called before the content goes, for full blocks that are evicted; never for what was forgotten.
        self.on_evict: Callable[[Content], None] = lambda content: None
        self.restored: set[int] = set()  # blocks that came back from disk and that nobody has used since
        self.warmed = WarmedBlocks(prefix.block_tokens)
        self._shared_salts: set[bytes] = set()

    # --- who holds what

    def is_shared(self, block: int) -> bool:
        """Whether the operator shares what the block holds."""
        return block in self.prefix and self.prefix.published(block).salt in self._shared_salts

    def hold(self, block: int) -> Hold | None:
        """The best of what can reach the content of a block; None when nobody can."""
        if self.is_shared(block):
            return Hold.SHARED
        if block not in self.prefix and not self.conversations.has_head(block):
            return None
        return self.conversations.hold(block)

    def release(self, blocks: list[int]) -> None:
        """A sequence holds these blocks of a chain no longer."""
        for block in reversed(blocks):  # leaf first
            hold = self.hold(block)
            self.pool.release(block, hold)
            if hold is None and self.pool.references(block) == 0:
                self.conversations.lose(block)
                self.warmed.lose([block])

    def settle(self, blocks: Iterable[int]) -> None:
        """Something else holds these blocks now: give the cached ones their new class, or free them."""
        known = {block: self.conversations.depth(block) for block in blocks if self.pool.is_cached(block)}
        for block in sorted(known, key=known.__getitem__, reverse=True):  # leaf first
            if not self.pool.is_cached(block):
                continue  # went with one that it went on from
            hold = self.hold(block)
            if hold is None:
                self.drop(block)
            else:
                self.pool.rehold(block, hold)

    # --- what goes

    def drop(self, block: int) -> None:
        """The content of a block that no sequence holds goes, and with it what went on from it."""
        lost = [block, *self.prefix.forget(block)]
        cut_off: set[int] = set()
        for one in lost:
            cut_off |= self.conversations.cut_before(one)
        self.restored.difference_update(lost)
        self.warmed.lose(lost)
        for one in lost:
            self.conversations.lose(one)
            if self.pool.is_cached(one):
                self.pool.rehold(one, None)
        self.settle(cut_off.difference(lost))

    def close(self, key: bytes) -> int:
        """Forget a conversation; gives the number of blocks freed.

        What only it ever reached goes, now or, while a sequence of it is here, when the last of them ends.
        """
        conversation = self.conversations.close(key)
        if conversation is None:
            return 0
        if conversation.num_sequences:
            self.settle(conversation.reached)
            return 0
        return self._drop_reached(conversation)

    def close_all(self, salt: bytes) -> int:
        """Forget every conversation under `salt`, and what belongs to none; gives the number of blocks freed."""
        num_before = self.pool.num_cached
        for key in self.conversations.keys_of(salt):
            self.close(key)
        for block in self.prefix.blocks_of(salt):
            if self.pool.is_cached(block):  # another one's loss may have freed it already
                self.drop(block)
        return num_before - self.pool.num_cached

    def exit(self, conversation: Conversation) -> int:
        """A sequence of the conversation has ended; gives the number of blocks freed, as `close` does."""
        is_last = self.conversations.exit(conversation)
        return self._drop_reached(conversation) if is_last and conversation.is_closed else 0

    def clear(self) -> None:
        """Drop everything that is cached."""
        for block in self.pool.cached_blocks():
            if self.pool.is_cached(block):  # another one's loss may have freed it already
                self.drop(block)
        self.warmed = WarmedBlocks(self.prefix.block_tokens)

    def contents(self) -> list[Content]:
        """Every cached full block of a user, parents before their children."""
        users = [b for b in self.pool.cached_blocks() if b in self.prefix and not self.is_shared(b)]
        return [self._content(block) for block in sorted(users, key=self.conversations.depth)]

    # --- the operator's prefixes

    def share(self, salt: bytes) -> None:
        """Blocks that are published under `salt` are the operator's from now on."""
        self._shared_salts.add(salt)
        self.settle(self.prefix.blocks_of(salt))

    def unshare(self, salt: bytes) -> None:
        self._shared_salts.discard(salt)
        self.settle(self.prefix.blocks_of(salt))

    def problems(self) -> list[str]:
        """Violations of what is promised above; empty when all is well."""
        found = [*self.pool.problems(), *self.conversations.problems()]
        for block in self.pool.cached_blocks():
            hold = self.hold(block)
            if hold is not self.pool.hold(block):
                found.append(f"cached block {block} is held by {hold}, but stands as {self.pool.hold(block)}")
            parent = self.prefix.published(block).parent if block in self.prefix else None
            if parent is not None and self.pool.references(parent) == 0 and not self.pool.is_cached(parent):
                found.append(f"cached block {block} goes on from block {parent}, which is free")
        if self.conversations.num_blocks != self.pool.num_blocks - self.pool.num_free:
            found.append("the blocks that somebody reached are not the cached and the used ones")
        return found

    # --- details

    def _content(self, block: int) -> Content:
        return Content(block, self.prefix.published(block).identity, self.conversations.reached_by(block))

    def _drop_reached(self, conversation: Conversation) -> int:
        before = self.pool.num_cached
        self.settle(self.conversations.leave(conversation))
        return before - self.pool.num_cached

    def _evict(self, block: int, retention: Retention) -> None:
        if block in self.prefix and retention not in (Retention.CLOSED, Retention.SHARED):
            self.on_evict(self._content(block))
        self.drop(block)
