"""The grammars of all live sequences: compiled beside the loop, and asked together which tokens may come next.

Knows ids, threads and the masks' memory. A grammar is compiled for its sequence alone and shared with no other, so that
nobody's answer, time or failure depends on who asked for the same. Does not know queues or logits.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from collections.abc import Sequence as Rows
from concurrent.futures import Executor, Future, ThreadPoolExecutor

import numpy as np
from llguidance import LLExecutor

from inference.core.allowed import WORD_BITS, Allowed
from inference.core.grammar import Compiler, Matching
from inference.core.grammar_text import GrammarNotUsable
from inference.core.messages import Admit, Vocabulary
from inference.core.sequence import Sequence

log = logging.getLogger(__name__)

MAX_FILL_THREADS = 8


class Grammars:
    """Called by the loop's thread only."""

    def __init__(self, compile_on: Executor | None = None) -> None:
        self._compile_on = compile_on or ThreadPoolExecutor(1, "grammar")
        self._compiler: Compiler | None = None
        self._fill_on: LLExecutor | None = None
        self._of: dict[str, Future[Matching]] = {}

    def learn(self, vocabulary: Vocabulary) -> None:
        """The tokens of the model that is served. One that the library can't read costs grammars, and nothing else."""
        try:
            self._compiler = Compiler(vocabulary)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:  # the library's panics are no Exception
            log.exception("the grammar library cannot read the model's vocabulary")
            return
        self._fill_on = LLExecutor(min(MAX_FILL_THREADS, len(os.sched_getaffinity(0))))

    def begin(self, request: Admit) -> None:
        """Start to compile, where the request has a grammar."""
        grammar, compiler = request.sampling.grammar, self._compiler
        if grammar is None or request.id in self._of:
            return
        if compiler is None:
            self._of[request.id] = Future()
            self._of[request.id].set_exception(GrammarNotUsable("the tokens of the model are not known"))
        else:
            self._of[request.id] = self._compile_on.submit(compiler.compile, grammar)

    def is_ready(self, sequence: Sequence) -> bool:
        """Whether nothing of the sequence is being compiled any more."""
        return sequence.id not in self._of or self._of[sequence.id].done()

    def forget(self, ids: Iterable[str]) -> None:
        """These sequences have ended."""
        for key in ids:
            if (compiling := self._of.pop(key, None)) is not None:
                compiling.cancel()

    def allowed(self, sequences: Rows[Sequence]) -> list[Allowed | str | None]:
        """For each what may come next, None without a grammar, or why its grammar has failed."""
        if not any(sequence.id in self._of for sequence in sequences):
            return [None] * len(sequences)
        found: list[Matching | str | None] = [self._advanced(sequence) for sequence in sequences]
        matchings = {row: one for row, one in enumerate(found) if isinstance(one, Matching)}
        masks = dict(zip(matchings, self._masks(list(matchings.values())), strict=True))
        return [one if not isinstance(one, Matching) else masks[row] for row, one in enumerate(found)]

    def _advanced(self, sequence: Sequence) -> Matching | str | None:
        if sequence.id not in self._of:
            return None
        try:
            matching = self._of[sequence.id].result()
            matching.read(sequence.token_ids, sequence.num_prompt)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # the library's panics are no Exception
            return str(error)
        return matching

    def _masks(self, matchings: list[Matching]) -> list[Allowed | str]:
        if not matchings:
            return []
        assert self._compiler is not None and self._fill_on is not None, "a grammar was compiled"
        num_words = -(-self._compiler.num_tokens // WORD_BITS)
        words = np.zeros((len(matchings), num_words), dtype=np.int32)
        rows = [(matching.matcher, row) for row, matching in enumerate(matchings)]
        try:
            self._fill_on.unsafe_compute_mask_ptr(rows, words.ctypes.data, words.strides[0], len(rows))
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # not for anything that a grammar holds: the library has a mistake
            if len(matchings) == 1:
                return [str(error)]
            log.exception("%d grammars could not be asked together; asking them one by one", len(matchings))
            return [self._masks([matching])[0] for matching in matchings]
        return [_checked(matching, words[row]) for row, matching in enumerate(matchings)]


def _checked(matching: Matching, words: np.ndarray) -> Allowed | str:
    try:
        matching.check()
    except GrammarNotUsable as error:
        return str(error)
    return Allowed(words, matching.is_complete)
