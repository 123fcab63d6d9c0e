"""Drafts by somebody who has read the answers before: tiny models say nothing twice, so looking up finds little.

Most guesses are right and some are not, at places that depend on the text only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from inference.core.chunk import Chunk
from inference.core.prompt_lookup import PromptLookup
from inference.core.runner import Runner

WRONG_EVERY = 5
OTHER = 7  # a token of every vocabulary


@contextmanager
def texts_read() -> Iterator[list[list[int]]]:
    """The whole texts of every sequence that a core runs inside, prompts and answers."""
    texts: dict[int, list[int]] = {}
    run = Runner.run

    def reading(self: Runner, chunks: Sequence[Chunk]):
        texts.update((id(chunk.sequence.token_ids), chunk.sequence.token_ids) for chunk in chunks)
        return run(self, chunks)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Runner, "run", reading)
        read: list[list[int]] = []
        yield read
        read += texts.values()


@contextmanager
def drafts_from(texts: Sequence[list[int]]) -> Iterator[None]:
    """Inside, a draft is what one of these texts says next."""
    known = {tuple(text[:end]): text for text in texts for end in range(1, len(text))}

    def draft(self: PromptLookup, token_ids: Sequence[int], num_tokens: int) -> list[int]:
        text = known.get(tuple(token_ids), [])
        guesses = text[len(token_ids) :][:num_tokens]
        return [
            token if place % WRONG_EVERY else OTHER - (token == OTHER)
            for place, token in enumerate(guesses, len(token_ids))
        ]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PromptLookup, "draft", draft)
        yield
