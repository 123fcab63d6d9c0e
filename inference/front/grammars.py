"""Whether an answer can be held to a grammar, found before the request is accepted; and the vocabulary for the core.

Knows when the core has to be told its vocabulary. Does not know how a grammar is tried (`grammar_process`) nor how an
answer is held to it (`core.grammars`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from inference.core.grammar_text import GrammarNotUsable, check_size
from inference.core.messages import CoreReady, Vocabulary
from inference.errors import InvalidGrammar, NotSupported
from inference.front.grammar_process import GrammarProcess
from inference.front.model import ServedModel
from inference.types import Grammar


class Grammars:
    """`tell` sends the core a command."""

    def __init__(self, model: ServedModel, tell: Callable[[Vocabulary], None]) -> None:
        self._model = model
        self._tell = tell
        self._process = GrammarProcess()
        self._reading: asyncio.Task[Vocabulary] | None = None
        self._is_told = False

    def start(self) -> None:
        """Reads the vocabulary while the core loads its model."""
        self._reading = asyncio.create_task(asyncio.to_thread(vocabulary_of, self._model))

    async def stop(self) -> None:
        if self._reading is not None:
            await asyncio.gather(self._reading, return_exceptions=True)
        await self._process.stop()

    def on_ready(self) -> None:
        """A new core, which knows nothing yet: told before it calls itself ready, its first answer does not wait."""
        self._is_told = False
        if self._reading is not None and self._reading.done():
            self._tell_once(self._reading.result())

    async def check(self, grammar: Grammar | None, core: CoreReady) -> None:
        """Raises InvalidGrammar, or NotSupported. The core has what it needs afterwards."""
        if grammar is None:
            return
        if not core.has_grammar:
            raise NotSupported("this engine cannot hold answers to a grammar")
        try:
            check_size(grammar)
        except GrammarNotUsable as error:
            raise _refusal(str(error)) from error
        if self._reading is None:
            self.start()
        assert self._reading is not None
        vocabulary = await asyncio.shield(self._reading)
        if reason := await self._process.verdict(grammar, vocabulary):
            raise _refusal(reason)
        self._tell_once(vocabulary)

    def _tell_once(self, vocabulary: Vocabulary) -> None:
        if not self._is_told:
            self._is_told = True
            self._tell(vocabulary)


def vocabulary_of(model: ServedModel) -> Vocabulary:
    tokenizer = model.tokenizer
    tokens = [tokenizer.token_bytes(token) for token in range(tokenizer.num_tokens)]
    return Vocabulary(tokens, sorted(tokenizer.control_ids), sorted(model.stop_ids))


def _refusal(reason: str) -> InvalidGrammar:
    return InvalidGrammar(f"the answer cannot be held to that format: {reason}")
