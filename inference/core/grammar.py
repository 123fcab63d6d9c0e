"""One answer's grammar: compiled for a vocabulary, advanced by the tokens of the answer, asked which may come next.

Knows the grammar library and its limits. Knows no sequences, no threads and no logits. Whatever goes wrong is an error
of this one grammar, also where the library itself breaks.
"""

from __future__ import annotations

from collections.abc import Sequence

from llguidance import LLMatcher, LLParserLimits, LLTokenizer

from inference.core.allowed import WORD_BITS
from inference.core.grammar_text import GrammarNotUsable, text_of
from inference.core.messages import Vocabulary
from inference.types import Grammar

# What one step may cost, measured on one core: fuel for the lexer is burnt at 14 per us, items are made at 20 per us.
# States take 1 to 2 kB each and stay for the answer. A grammar that needs more fails, alone.
LIMITS = LLParserLimits(
    initial_lexer_fuel=1_000_000,
    step_lexer_fuel=100_000,
    step_max_items=50_000,
    max_items_in_row=2_000,
    max_lexer_states=25_000,
    max_grammar_size=200_000,
    verbose_errors=False,
)


class _Tokens:
    """What the library asks of a tokenizer; it is never called, because our grammars force no spelling."""

    is_tokenizer_wrapper = True
    bos_token_id = None

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.tokens = vocabulary.tokens
        self.special_token_ids = vocabulary.control_ids
        self.eos_token_id = vocabulary.end_ids[0]

    def __call__(self, text: bytes) -> list[int]:
        raise NotImplementedError


class Compiler:
    """Turns grammars into states of answers, for one vocabulary."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._tokenizer = LLTokenizer(_Tokens(vocabulary), eos_token=vocabulary.end_ids)
        self.num_words = -(-self._tokenizer.vocab_size // WORD_BITS)

    def compile(self, grammar: Grammar) -> Matching:
        """Raises GrammarNotUsable, also for a grammar that no text fits. May take a second, without the GIL."""
        matching = Matching(LLMatcher(self._tokenizer, text_of(grammar), log_level=0, limits=LIMITS))
        matching.check()
        return matching


class Matching:
    """How far an answer has come in its grammar.

    What it has not read of the answer it reads before it is asked: the state follows from the tokens, whatever
    happened to the sequence meanwhile.
    """

    def __init__(self, matcher: LLMatcher) -> None:
        self.matcher = matcher
        self._num_read = 0

    @property
    def is_complete(self) -> bool:
        """Whether nothing but an end may follow."""
        return self.matcher.is_stopped()

    def read(self, answer: Sequence[int]) -> None:
        """`answer` is all of it. Raises GrammarNotUsable when it does not fit."""
        for token in answer[self._num_read :]:
            self.matcher.consume_token(token)
            self._num_read += 1
        self.check()

    def check(self) -> None:
        """Raises GrammarNotUsable after an error; the library itself would only allow nothing but the ends."""
        if self.matcher.is_error():
            raise GrammarNotUsable(self.matcher.get_error().partition("\n")[0] or "it cannot be followed")
