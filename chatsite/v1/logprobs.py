"""Log-probabilities as the two OpenAI forms show them.

Knows shapes only. A token is bytes, which need not be whole characters: as a text it shows U+FFFD for the rest.
"""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections.abc import Sequence
from typing import Any

from inference.types import TokenLogprob

# JSON has no infinity; OpenAI's own value for what is next to impossible.
LOWEST = -9999.0


def chat_logprobs(logprobs: Sequence[TokenLogprob]) -> dict[str, Any]:
    """Of chat completions."""
    content = [_entry(one) | {"top_logprobs": [_entry(other) for other in one.top]} for one in logprobs]
    return {"content": content, "refusal": None}


def completion_logprobs(logprobs: Sequence[TokenLogprob], offset: int) -> dict[str, Any]:
    """Of text completions; `offset` characters of the answer stand before these tokens."""
    offsets: list[int] = []
    decoder = getincrementaldecoder("utf-8")("replace")
    for one in logprobs:
        offsets.append(offset)
        offset += len(decoder.decode(one.token))
    return {
        "tokens": [text_of(one) for one in logprobs],
        "token_logprobs": [value_of(one) for one in logprobs],
        "top_logprobs": [{text_of(other): value_of(other) for other in one.top} for one in logprobs],
        "text_offset": offsets,
    }


def text_of(token: TokenLogprob) -> str:
    return token.token.decode("utf-8", "replace")


def value_of(token: TokenLogprob) -> float:
    return max(token.logprob, LOWEST)


def _entry(token: TokenLogprob) -> dict[str, Any]:
    return {"token": text_of(token), "logprob": value_of(token), "bytes": list(token.token)}
