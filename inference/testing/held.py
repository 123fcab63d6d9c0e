"""A short answer that fits a grammar, for questions without a script: as if the model always closed what is open.

Knows the grammar library and bytes. Does not know why the answer is held.
"""

from __future__ import annotations

from inference.core.messages import Vocabulary
from inference.types import Grammar

# What ends a text, an object or a list goes before what goes on; blanks come last.
ORDER = bytes(sorted(range(256), key=lambda byte: (byte not in b'"}]', byte in b" \t\r\n", byte)))
MAX_TOKENS = 1000


def fitting(grammar: Grammar, vocabulary: Vocabulary) -> list[int]:
    """Tokens of one byte each. An answer that does not come to its end is left as it is."""
    from inference.core.grammar import Compiler

    matcher = Compiler(vocabulary).compile(grammar).matcher
    answer: list[int] = []
    while not matcher.is_accepting() and len(answer) < MAX_TOKENS:
        found = next((byte for byte in ORDER if matcher.try_consume_tokens([byte])), None)
        if found is None:
            break
        answer.append(found)
    return answer
