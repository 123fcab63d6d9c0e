"""One answer's grammar: compiled for a vocabulary, advanced by the tokens of the answer, asked which may come next.

Knows the grammar library and its limits. Knows no sequences, no threads and no logits. Whatever goes wrong is an error
of this one grammar, also where the library itself breaks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from llguidance import LLMatcher, LLParserLimits, LLTokenizer, TokenizerWrapper

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

MAX_ERROR_CHARACTERS = 300
_OUR_PLACE = re.compile(r'^(at \d+\(\d+\): )?failed to (compile JSON schema|parse "%json"): ')


class _Tokens(TokenizerWrapper):
    """What the library asks of a tokenizer; it is never called, because our grammars force no spelling."""

    is_tokenizer_wrapper = True
    bos_token_id = None

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.tokens = vocabulary.tokens
        self.special_token_ids = vocabulary.control_ids
        self.eos_token_id = vocabulary.end_ids[0]

    def __call__(self, s: str) -> list[int]:
        raise NotImplementedError


class Compiler:
    """Turns grammars into states of answers, for one vocabulary."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._tokenizer = LLTokenizer(_Tokens(vocabulary), eos_token=vocabulary.end_ids)
        self.num_tokens = self._tokenizer.vocab_size

    def compile(self, grammar: Grammar) -> Matching:
        """Raises GrammarNotUsable. Lets other threads run meanwhile.

        No limit of the library bounds the time or the memory of this: what people send is tried elsewhere first.
        """
        matching = Matching(LLMatcher(self._tokenizer, text_of(grammar), log_level=0, limits=LIMITS))
        matching.check()
        return matching

    def try_out(self, grammar: Grammar) -> None:
        """Raises GrammarNotUsable, also for a grammar that no text fits."""
        matching = self.compile(grammar)
        matching.matcher.compute_bitmask()
        matching.check()


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

    def read(self, token_ids: Sequence[int], num_prompt: int) -> None:
        """All tokens of the prompt and the answer. Raises GrammarNotUsable when the answer does not fit."""
        for token in token_ids[num_prompt + self._num_read :]:
            self.matcher.consume_token(token)
            self._num_read += 1
        self.check()

    def check(self) -> None:
        """Raises GrammarNotUsable after an error; the library itself would only allow nothing but the ends."""
        if self.matcher.is_error():
            raise GrammarNotUsable(_told(self.matcher.get_error()))


def _told(error: str) -> str:
    """The library's sentence without its state, its traces and its place in what we wrote around a schema."""
    if error.startswith("NoExtension"):
        return "no text fits it"
    sentence = " ".join(error.partition("\n<")[0].split())
    return _OUR_PLACE.sub("", sentence)[:MAX_ERROR_CHARACTERS] or "it cannot be followed"
