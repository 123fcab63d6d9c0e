"""How much of a prompt is in blocks already: by the conversation's heads first, then by content.

Knows token ids, heads and published blocks; takes nothing and changes nothing, so it may be asked at any time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from inference.core.conversations import Conversation, Head
from inference.core.kept import KeptBlocks
from inference.core.prefix import Salts


class Source(StrEnum):
    """Where reused KV came from, as it is counted and told."""

    HEAD = "head"  # the conversation's own turns
    PREFIX = "prefix"  # equal content of the same owner
    SHARED = "shared"  # the operator's prefixes
    DISK = "disk"


@dataclass(frozen=True, slots=True)
class Match:
    """What a sequence may reuse: `blocks` as they are, and part of `copied_from` as a private copy.

    `sources` says for each block where it came from. The last block may count in part; a part always comes from a head.
    """

    blocks: list[int]
    sources: list[Source]
    num_tokens: int
    copied_from: int | None = None

    def without_copy(self, block_tokens: int) -> Match:
        return Match(self.blocks, self.sources, len(self.blocks) * block_tokens)

    def tokens_by_source(self, block_tokens: int) -> dict[Source, int]:
        tokens = dict.fromkeys(Source, 0)
        for source in self.sources:
            tokens[source] += block_tokens
        tokens[Source.HEAD] += self.num_tokens - len(self.blocks) * block_tokens
        return tokens


def find_match(
    kept: KeptBlocks, conversation: Conversation | None, salts: Salts, token_ids: Sequence[int]
) -> Match:
    """The longest reusable beginning. At least the last token is left to compute, for its logits."""
    limit, size = len(token_ids) - 1, kept.prefix.block_tokens
    head, num_head = None, 0
    if conversation is not None and conversation.heads:
        ids = np.asarray(token_ids, dtype=np.int64)
        head, num_head = kept.conversations.best_head(conversation, ids, limit)
    full, rest = divmod(num_head, size)
    blocks = head.blocks[:full] if head else []
    further = kept.prefix.match(salts, token_ids, blocks, limit)
    sources = [Source.HEAD] * full + [_source(kept, block) for block in further]
    if further or head is None or not rest:
        return Match([*blocks, *further], sources, len(sources) * size)
    tail = head.blocks[full]
    if num_head == len(head.token_ids) and _is_private(kept, tail, head):
        return Match([*blocks, tail], [*sources, Source.HEAD], num_head)
    return Match(blocks, sources, num_head, copied_from=tail)


def _source(kept: KeptBlocks, block: int) -> Source:
    if kept.is_shared(block):
        return Source.SHARED
    return Source.DISK if block in kept.restored else Source.PREFIX


def _is_private(kept: KeptBlocks, block: int, head: Head) -> bool:
    """Whether a sequence that goes on from `head` may write on into the block itself instead of a copy."""
    is_idle = kept.pool.references(block) == 0 and block not in kept.prefix
    return is_idle and kept.conversations.is_only_head(block, head)
