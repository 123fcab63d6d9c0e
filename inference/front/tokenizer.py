"""What the front asks of a tokenizer. `front.model_tokenizer` reads a model folder; `testing.tokenizer` needs none.

Knows the questions, not the answers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol


class Tokenizer(Protocol):
    """`special_ids` mark turns and ends: they never come from what a user typed and have no visible text."""

    @property
    def fingerprint(self) -> str: ...

    @property
    def control_pattern(self) -> re.Pattern[str]:
        """Matches every added token in a template's own text."""

    @property
    def special_ids(self) -> frozenset[int]: ...

    @property
    def control_ids(self) -> frozenset[int]:
        """Every token that `control_pattern` matches: nothing that people read or write is one of them."""

    @property
    def bos_token(self) -> str: ...

    @property
    def eos_token(self) -> str: ...

    @property
    def num_tokens(self) -> int:
        """One more than the highest id that has a text of its own."""

    def knows(self, token: int) -> bool:
        """Whether the model has this id."""

    def control_id(self, text: str) -> int: ...

    def encode_plain(self, text: str, *, is_start: bool = False) -> list[int]:
        """Ids of text alone: nothing in it is read as a control token. `is_start`: nothing comes before it."""

    def decode(self, ids: Sequence[int]) -> str:
        """The text of `ids`, control tokens by their names, U+FFFD for bytes that are no text."""

    def token_bytes(self, token: int) -> bytes: ...
