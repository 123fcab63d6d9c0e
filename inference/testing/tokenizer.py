"""A tokenizer without a vocabulary: one to three bytes are one token, and the id says which.

Knows bytes and three control tokens. Prompts become one id per byte; a scripted answer may use longer tokens,
also ones that cut a character in two. Needs no file and no library, so the scripted engine starts at once.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

CONTROL_TOKENS = {"<|endoftext|>": 256, "<|im_start|>": 257, "<|im_end|>": 258}
START_OF_TURN = CONTROL_TOKENS["<|im_start|>"]
END_OF_TURN = CONTROL_TOKENS["<|im_end|>"]
MAX_TOKEN_BYTES = 3

_CONTROL_PATTERN = re.compile("|".join(map(re.escape, CONTROL_TOKENS)))
_CONTROL_NAMES = {token: name.encode() for name, token in CONTROL_TOKENS.items()}


def token_of(piece: bytes) -> int:
    """The id of one to three bytes: a byte is itself, longer ones carry their length above their bytes."""
    if not 1 <= len(piece) <= MAX_TOKEN_BYTES:
        raise ValueError(f"a scripted token has 1 to {MAX_TOKEN_BYTES} bytes, not {len(piece)}")
    return piece[0] if len(piece) == 1 else len(piece) << 24 | int.from_bytes(piece, "big")


def bytes_of(token: int) -> bytes:
    if token < 256:
        return bytes([token])
    if token in _CONTROL_NAMES:
        return _CONTROL_NAMES[token]
    length = token >> 24
    return (token & (1 << 8 * length) - 1).to_bytes(length, "big")


def tokens_of(text: str) -> list[int]:
    """Tokens of up to three bytes that never mix two characters; a four-byte character is cut 2 + 2."""
    tokens: list[int] = []
    for match in re.finditer(r"[\x00-\x7f]{1,3}|.", text, re.DOTALL):
        raw = match.group().encode("utf-8", "surrogatepass")
        size = 2 if len(raw) == 4 else MAX_TOKEN_BYTES
        tokens += [token_of(raw[start : start + size]) for start in range(0, len(raw), size)]
    return tokens


class ByteTokenizer:
    """Satisfies `inference.front.tokenizer.Tokenizer`."""

    fingerprint = "rill-scripted-bytes"
    control_pattern = _CONTROL_PATTERN
    special_ids = control_ids = frozenset(CONTROL_TOKENS.values())
    num_tokens = max(CONTROL_TOKENS.values()) + 1
    bos_token = ""
    eos_token = next(name for name, token in CONTROL_TOKENS.items() if token == END_OF_TURN)

    def knows(self, token: int) -> bool:
        return token < 256 or token in self.special_ids or token >> 24 in (2, 3)

    def control_id(self, text: str) -> int:
        return CONTROL_TOKENS[text]

    def encode_plain(self, text: str, *, is_start: bool = False) -> list[int]:
        return list(text.encode())

    def decode(self, ids: Sequence[int]) -> str:
        return b"".join(map(bytes_of, ids)).decode("utf-8", "replace")

    def token_bytes(self, token: int) -> bytes:
        return bytes_of(token)
