"""How content that was kept elsewhere comes back into blocks of memory.

Knows which blocks of a waiting sequence are missing and how a restored one becomes findable, as if it had just been
computed. Does not know where the content comes from, nor whether getting it pays (`second_tier`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from inference.core.conversations import Conversation
from inference.core.kv_cache import KvCache
from inference.core.prefix import BlockIdentity
from inference.core.reuse import Match
from inference.core.sequence import Sequence as Waiting

Write = Callable[[int, memoryview], None]  # (block, its numbers)


def missing(kv: KvCache, sequence: Waiting) -> list[BlockIdentity]:
    """The whole blocks that the sequence would have to compute if it started now."""
    if sequence.is_forgotten:
        return []
    match, ids = kv.match(sequence), sequence.token_ids
    return kv.prefix.identities(kv.salts(sequence, match), ids, _whole_blocks(kv, match), len(ids) - 1)


def has_room(kv: KvCache, sequence: Waiting) -> bool:
    """Whether the whole sequence fits now; else what is restored for it would only push others out."""
    num_held = sum(1 for block in kv.match(sequence).blocks if kv.pool.references(block))  # by others already
    return kv.num_blocks_for(len(sequence.token_ids)) - num_held <= kv.pool.num_available


def adopt(
    kv: KvCache,
    sequence: Waiting,
    blocks: Sequence[BlockIdentity],
    payloads: Sequence[memoryview],
    write: Write,
) -> int:
    """Cache the content of the first of `blocks`; gives how many of them.

    Memory has changed since they were asked for: what is missing is looked up again. Nobody holds them afterwards, so
    who is in need may take them before the sequence does, which is only slower.
    """
    chain = _whole_blocks(kv, kv.match(sequence))
    wanted = missing(kv, sequence)
    if not wanted or wanted[0] not in blocks:
        return 0
    start = blocks.index(wanted[0])
    conversation = _enter(kv, sequence)
    for block in chain:
        kv.pool.retain(block)
    num_known = len(chain)
    for identity, payload in zip(blocks[start:], payloads[start:], strict=False):
        if not kv.pool.num_available:
            break
        block = kv.pool.take()
        write(block, payload)
        if not _publish(kv, conversation, chain, identity, block):
            break
    kv.kept.restored.update(chain[num_known:])
    kv.kept.release(chain)
    if conversation is not None and sequence.conversation is None:
        kv.num_forgotten += kv.kept.exit(conversation)
    return len(chain) - num_known


def _whole_blocks(kv: KvCache, match: Match) -> list[int]:
    return match.blocks[: match.num_tokens // kv.block_tokens]


def _enter(kv: KvCache, sequence: Waiting) -> Conversation | None:
    """Who the content belongs to, so that forgetting the conversation forgets it."""
    key, salt = sequence.admit.conversation, sequence.admit.salt
    if not key or sequence.conversation is not None:
        return sequence.conversation
    return kv.kept.conversations.enter(key, salt, is_closed=False)


def _publish(
    kv: KvCache, conversation: Conversation | None, chain: list[int], identity: BlockIdentity, block: int
) -> bool:
    """Append a block whose content is in place to its chain; False when its key belongs to other content."""
    kv.kept.conversations.reach(conversation, [block], len(chain))
    parent = chain[-1] if chain else None
    if kv.prefix.publish(identity.salt, parent, identity.token_ids, block) != block:
        kv.kept.release([block])
        return False
    chain.append(block)
    return True
