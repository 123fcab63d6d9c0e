"""Full KV blocks by content: the chain of token ids that leads to them.

A block's key is SHA-256 over its parent's key, the salt of its owner and its own token ids; the root key holds the
model's fingerprint, so nothing is found across models or owners. A child may have another owner than its
parent: one user's own words follow a prefix that all users share. A key alone never serves KV: token ids, salt and
parent are compared on every hit. Knows nothing about reference counts or tensors.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Salts:
    """Whose each block of a sequence is: `own`, but for a beginning of whole blocks that users share."""

    own: bytes
    shared: bytes = b""
    num_shared_blocks: int = 0

    def at(self, index: int) -> bytes:
        return self.shared if index < self.num_shared_blocks else self.own


@dataclass(frozen=True, slots=True)
class BlockIdentity:
    """What a full block holds, by content, wherever it is: `key` stands for all of it and everything before it."""

    key: bytes
    parent_key: bytes
    salt: bytes
    token_ids: tuple[int, ...]


@dataclass(slots=True)
class Published:
    """What a findable block holds. Its children are findable as long as it is."""

    block: int
    parent: int | None
    identity: BlockIdentity
    children: set[int] = field(default_factory=set)

    @property
    def key(self) -> bytes:
        return self.identity.key

    @property
    def salt(self) -> bytes:
        return self.identity.salt


def sha256(payload: bytes) -> bytes:
    return hashlib.sha256(payload).digest()


class PrefixCache:
    """Published blocks. A published block is full and never changes."""

    def __init__(
        self, fingerprint: bytes, block_tokens: int, digest: Callable[[bytes], bytes] = sha256
    ) -> None:
        self.block_tokens = block_tokens
        self.fingerprint = fingerprint
        self.root_key = digest(b"root" + fingerprint)
        self._digest = digest
        self._block_by_key: dict[bytes, int] = {}
        self._published: dict[int, Published] = {}

    def __len__(self) -> int:
        return len(self._published)

    def __contains__(self, block: int) -> bool:
        return block in self._published

    def published(self, block: int) -> Published:
        """What a published block holds."""
        return self._published[block]

    def blocks_of(self, salt: bytes) -> list[int]:
        """Every block of one owner."""
        return [block for block, entry in self._published.items() if entry.salt == salt]

    def match(self, salts: Salts, token_ids: Sequence[int], known: Sequence[int], limit: int) -> list[int]:
        """Blocks that continue the chain `known` over `token_ids`, as long as whole blocks fit into `limit` tokens."""
        found: list[int] = []
        parent = known[-1] if known else None
        if parent is not None and parent not in self._published:
            return found
        size = self.block_tokens
        for index in range(len(known), limit // size):
            ids = tuple(token_ids[index * size : (index + 1) * size])
            block = self._find(salts.at(index), parent, ids)
            if block is None:
                break
            found.append(block)
            parent = block
        return found

    def identities(
        self, salts: Salts, token_ids: Sequence[int], known: Sequence[int], limit: int
    ) -> list[BlockIdentity]:
        """What the whole blocks behind the chain `known` would hold; nothing where that chain can't be found."""
        found: list[BlockIdentity] = []
        if known and known[-1] not in self._published:
            return found
        parent_key, size = self.key_of(known[-1] if known else None), self.block_tokens
        for index in range(len(known), limit // size):
            salt, ids = salts.at(index), tuple(token_ids[index * size : (index + 1) * size])
            found.append(BlockIdentity(self.child_key(parent_key, salt, ids), parent_key, salt, ids))
            parent_key = found[-1].key
        return found

    def publish(self, salt: bytes, parent: int | None, token_ids: tuple[int, ...], block: int) -> int | None:
        """Make a full block findable; gives the block that holds this content from now on.

        That is `block` itself or an older one with equal content. None: the key belongs to other content
        (a collision) or the parent is not published, so this block stays private and so do its children.
        """
        if parent is not None and parent not in self._published:
            return None
        known = self._find(salt, parent, token_ids)
        if known is not None:
            return known
        key = self._key(salt, parent, token_ids)
        if key in self._block_by_key:
            return None
        self._block_by_key[key] = block
        identity = BlockIdentity(key, self.key_of(parent), salt, token_ids)
        self._published[block] = Published(block, parent, identity)
        if parent is not None:
            self._published[parent].children.add(block)
        return block

    def forget(self, block: int) -> list[int]:
        """The block's content is about to go; gives its descendants, which nobody can find any more either."""
        entry = self._published.get(block)
        if entry is None:
            return []
        if entry.parent is not None:
            self._published[entry.parent].children.discard(block)
        chain = list(self._with_descendants(block))
        for lost in chain:
            del self._block_by_key[self._published.pop(lost).key]
        return chain[1:]

    def key_of(self, block: int | None) -> bytes:
        """The key of a published block, or of the root."""
        return self.root_key if block is None else self._published[block].key

    def child_key(self, parent_key: bytes, salt: bytes, token_ids: tuple[int, ...]) -> bytes:
        # The salt's length goes before it, so that no two different inputs read the same.
        return self._digest(
            parent_key + len(salt).to_bytes(4, "little") + salt + array("I", token_ids).tobytes()
        )

    # --- details

    def _find(self, salt: bytes, parent: int | None, token_ids: tuple[int, ...]) -> int | None:
        block = self._block_by_key.get(self._key(salt, parent, token_ids))
        if block is None:
            return None
        entry = self._published[block]
        is_same = entry.identity.token_ids == token_ids and entry.salt == salt and entry.parent == parent
        return block if is_same else None

    def _key(self, salt: bytes, parent: int | None, token_ids: tuple[int, ...]) -> bytes:
        return self.child_key(self.key_of(parent), salt, token_ids)

    def _with_descendants(self, block: int) -> Iterator[int]:
        todo = [block]
        while todo:
            block = todo.pop()
            yield block
            todo += self._published[block].children
