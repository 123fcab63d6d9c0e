"""Who waits because another sequence computes the same beginning right now.

n choices of one prompt, or several chats of a user with one long system prompt, arrive together; the first one reads
it and the others take its blocks. Knows token ids and what is cached; decides nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable

from inference.core.kv_cache import KvCache
from inference.core.sequence import Sequence


def is_being_computed(sequence: Sequence, reading: Iterable[Sequence], kv: KvCache) -> bool:
    """Whether the next block that a waiting sequence would compute is about to be filled by one in `reading`.

    Those still read their prompts: who decodes has published all that both have in common. When it ends, fails
    or is preempted it runs no more, and nobody waits for it.
    """
    size = kv.block_tokens
    if len(sequence.token_ids) <= size:
        return False  # the last token is always computed, so there is no whole block to wait for
    readers = [other for other in reading if _begins_like(sequence, other, size)]
    if not readers:
        return False
    end = (kv.num_reusable(sequence) // size + 1) * size
    if end > len(sequence.token_ids) - 1:
        return False
    return any(other.num_computed < end and _begins_like(sequence, other, end) for other in readers)


def _begins_like(sequence: Sequence, other: Sequence, num_tokens: int) -> bool:
    return (
        other.admit.salt == sequence.admit.salt
        and len(other.token_ids) >= num_tokens
        and other.token_ids[:num_tokens] == sequence.token_ids[:num_tokens]
    )
