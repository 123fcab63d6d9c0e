"""Full KV blocks by content: the chain of token ids that leads to them.

A block's key is SHA-256 over its parent's key and its own token ids; the root key holds the model's fingerprint and
the salt of (tenant, user), so nothing is found across models or owners. A key alone never serves KV: token
ids, salt and parent are compared on every hit. Knows nothing about reference counts or tensors.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass

ROOT = 0  # serial of "no parent"


@dataclass(frozen=True, slots=True)
class _Entry:
    serial: int  # unique for ever, unlike block numbers: a stale child can't find a new parent
    parent: int  # serial of the parent, or ROOT
    key: bytes
    salt: bytes
    token_ids: tuple[int, ...]


def sha256(payload: bytes) -> bytes:
    return hashlib.sha256(payload).digest()


class PrefixCache:
    """Published blocks. A published block is full and never changes."""

    def __init__(
        self, fingerprint: bytes, block_tokens: int, digest: Callable[[bytes], bytes] = sha256
    ) -> None:
        self.block_tokens = block_tokens
        self._fingerprint = fingerprint
        self._digest = digest
        self._serials = 0
        self._block_by_key: dict[bytes, int] = {}
        self._entries: dict[int, _Entry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, block: int) -> bool:
        return block in self._entries

    def match(self, salt: bytes, token_ids: Sequence[int], known: Sequence[int], limit: int) -> list[int]:
        """Blocks that continue the chain `known` over `token_ids`, as long as whole blocks fit into `limit` tokens."""
        found: list[int] = []
        parent = known[-1] if known else None
        if parent is not None and parent not in self._entries:
            return found
        size = self.block_tokens
        for start in range(len(known) * size, limit - size + 1, size):
            block = self._find(salt, parent, tuple(token_ids[start : start + size]))
            if block is None:
                break
            found.append(block)
            parent = block
        return found

    def publish(self, salt: bytes, parent: int | None, token_ids: tuple[int, ...], block: int) -> int | None:
        """Make a full block findable; gives the block that holds this content from now on.

        That is `block` itself or an older one with equal content. None: the key belongs to other content
        (a collision) or the parent is not published, so this block stays private and so do its children.
        """
        if parent is not None and parent not in self._entries:
            return None
        known = self._find(salt, parent, token_ids)
        if known is not None:
            return known
        key = self._key(salt, parent, token_ids)
        if key in self._block_by_key:
            return None
        self._serials += 1
        self._block_by_key[key] = block
        self._entries[block] = _Entry(self._serials, self._serial(parent), key, salt, token_ids)
        return block

    def forget(self, block: int) -> None:
        """The block's content is about to go; unknown blocks are ignored."""
        entry = self._entries.pop(block, None)
        if entry is not None:
            del self._block_by_key[entry.key]

    def _find(self, salt: bytes, parent: int | None, token_ids: tuple[int, ...]) -> int | None:
        block = self._block_by_key.get(self._key(salt, parent, token_ids))
        if block is None:
            return None
        entry = self._entries[block]
        is_same = entry.token_ids == token_ids and entry.salt == salt and entry.parent == self._serial(parent)
        return block if is_same else None

    def _serial(self, parent: int | None) -> int:
        return ROOT if parent is None else self._entries[parent].serial

    def _key(self, salt: bytes, parent: int | None, token_ids: tuple[int, ...]) -> bytes:
        # Lengths are written before the variable parts, so that no two different inputs read the same.
        if parent is None:
            head = b"root" + len(self._fingerprint).to_bytes(4, "little") + self._fingerprint + salt
            parent_key = self._digest(head)
        else:
            parent_key = self._entries[parent].key
        return self._digest(parent_key + array("I", token_ids).tobytes())
