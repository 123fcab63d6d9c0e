"""Whether an answer can be held to a grammar, found before the request is accepted; and the vocabulary for the core.

Knows who waits for a check and on which thread it runs: one, so that who sends costly grammars waits for others who do
and nobody else. Does not know what is costly (`core.grammar_text`) nor how an answer is held (`core.grammars`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from inference.core.grammar import Compiler
from inference.core.grammar_text import GrammarNotUsable
from inference.core.messages import CoreReady, Vocabulary
from inference.errors import InvalidGrammar, NotSupported
from inference.front.model import ServedModel
from inference.types import Grammar


class Grammars:
    """`tell` sends the core a command."""

    def __init__(self, model: ServedModel, tell: Callable[[Vocabulary], None]) -> None:
        self._model = model
        self._tell = tell
        self._thread = ThreadPoolExecutor(1, "grammar-check")
        self._read: Future[tuple[Vocabulary, Compiler]] | None = None
        self._is_told = False

    def start(self) -> None:
        """Reads the vocabulary while the core loads its model."""
        self._read = self._thread.submit(_read, self._model)

    def on_ready(self) -> None:
        """A new core, which knows nothing yet: told before it calls itself ready, its first answer does not wait."""
        self._is_told = False
        if self._read is not None and self._read.done() and self._read.exception() is None:
            self._tell_once(self._read.result()[0])

    async def check(self, grammar: Grammar | None, core: CoreReady) -> None:
        """Raises InvalidGrammar, or NotSupported. The core has what it needs afterwards."""
        if grammar is None:
            return
        if not core.has_grammar:
            raise NotSupported("this engine cannot hold answers to a grammar")
        if self._read is None:
            self.start()
        assert self._read is not None
        try:
            vocabulary, compiler = await asyncio.wrap_future(self._read)
        except Exception as error:  # the library's own, without a class
            raise NotSupported(f"the grammar library cannot read this model's tokens: {error}") from error
        self._tell_once(vocabulary)
        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, compiler.compile, grammar)
        except GrammarNotUsable as error:
            raise InvalidGrammar(f"the answer cannot be held to that grammar: {error}") from error

    def _tell_once(self, vocabulary: Vocabulary) -> None:
        if not self._is_told:
            self._is_told = True
            self._tell(vocabulary)

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)


def vocabulary_of(model: ServedModel) -> Vocabulary:
    tokenizer = model.tokenizer
    tokens = [tokenizer.token_bytes(token) for token in range(tokenizer.num_tokens)]
    return Vocabulary(tokens, sorted(tokenizer.control_ids), sorted(model.stop_ids))


def _read(model: ServedModel) -> tuple[Vocabulary, Compiler]:
    vocabulary = vocabulary_of(model)
    return vocabulary, Compiler(vocabulary)
