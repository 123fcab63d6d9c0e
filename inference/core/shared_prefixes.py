"""Which beginnings of a prompt users may share, and whether it is worth it.

Only what the operator declared is ever shared, token by token. A declared prefix switches itself on when enough of the
recent prompts, of more than one owner, begin with it, and off again when they no longer do. Knows token ids, salts and
shares of prompts; no blocks and no sequences.
"""

from __future__ import annotations

from array import array
from collections import Counter, deque
from collections.abc import Sequence

from inference.core.messages import DeclaredPrefix, PrefixReport
from inference.core.prefix import Salts, sha256

# Goes before what stands in the place of an owner's salt; those are 32 bytes of HMAC and never equal it.
SHARED_SALT = b"shared prefix "
WINDOW_PROMPTS = 200
# With one owner there is nobody to share with.
MIN_OWNERS = 2


class _Prefix:
    """One declared prefix and the recent prompts: the salt of each that began with it, None for the others."""

    def __init__(self, declared: DeclaredPrefix, block_tokens: int, threshold: float) -> None:
        self.declared = declared
        self.salt = SHARED_SALT + sha256(array("I", declared.token_ids).tobytes())
        self.num_blocks = len(declared.token_ids) // block_tokens  # only whole blocks can be shared
        self.is_shared = threshold == 0
        self._threshold = threshold
        self._recent: deque[bytes | None] = deque()
        self._owners: Counter[bytes] = Counter()  # of the recent prompts that begin with it

    @property
    def overlap(self) -> float:
        return self._owners.total() / max(1, len(self._recent))

    def begins(self, token_ids: Sequence[int]) -> bool:
        ids = self.declared.token_ids
        return list(token_ids[: len(ids)]) == ids

    def observe(self, salt: bytes, token_ids: Sequence[int]) -> None:
        self._remember(salt if self.begins(token_ids) else None)
        if self.is_shared:
            self.is_shared = self.overlap >= self._threshold / 2  # half way back, so that it does not flutter
        else:
            self.is_shared = len(self._owners) >= MIN_OWNERS and self.overlap >= self._threshold

    def _remember(self, salt: bytes | None) -> None:
        self._recent.append(salt)
        if salt is not None:
            self._owners[salt] += 1
        if len(self._recent) > WINDOW_PROMPTS and (oldest := self._recent.popleft()) is not None:
            self._owners[oldest] -= 1
            if not self._owners[oldest]:
                del self._owners[oldest]


class SharedPrefixes:
    """Everything that is declared now."""

    def __init__(self, block_tokens: int, threshold: float) -> None:
        """`threshold` 0 shares a prefix as soon as it is declared, and for ever."""
        self._block_tokens = block_tokens
        self._threshold = threshold
        self._prefixes: list[_Prefix] = []

    def declare(self, prefixes: Sequence[DeclaredPrefix]) -> None:
        """These and no others. What was declared before under the same name and ids keeps what was measured."""
        known = {prefix.declared.name: prefix for prefix in self._prefixes}
        self._prefixes = [
            same
            if (same := known.get(declared.name)) and same.declared == declared
            else _Prefix(declared, self._block_tokens, self._threshold)
            for declared in prefixes
        ]

    def observe(self, salt: bytes, token_ids: Sequence[int]) -> None:
        """A user's prompt has arrived."""
        for prefix in self._prefixes:
            prefix.observe(salt, token_ids)

    def salts(self, own: bytes, token_ids: Sequence[int]) -> Salts:
        """Whose the blocks of a prompt are: the operator's as far as the longest shared prefix goes."""
        fitting = [p for p in self._prefixes if p.is_shared and p.begins(token_ids)]
        if not fitting:
            return Salts(own)
        longest = max(fitting, key=lambda prefix: prefix.num_blocks)
        return Salts(own, longest.salt, longest.num_blocks)

    def shared(self) -> dict[bytes, list[int]]:
        """What is shared now: salt -> token ids."""
        return {p.salt: p.declared.token_ids for p in self._prefixes if p.is_shared and p.num_blocks}

    def reports(self) -> list[PrefixReport]:
        return [
            PrefixReport(p.declared.name, len(p.declared.token_ids), p.overlap, p.is_shared)
            for p in self._prefixes
        ]
