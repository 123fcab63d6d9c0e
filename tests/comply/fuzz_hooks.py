"""What the schema cannot say: names and numbers of the model that is served. Loaded by schemathesis.

Without this nearly every generated request would end at the name of its model.
"""

from __future__ import annotations

import os
from typing import Any

import schemathesis

CHAT_MODEL, EMBEDDER = os.environ["COMPLY_MODELS"].split()
NUM_DIMENSIONS = 384
NUM_TOKENS = 200  # of the vocabulary, that surely are there
# Of two fields a schema cannot say that one is not above the other.
LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
DEFAULT_LIMIT = 16  # of text completions
MAX_TOKEN_ID = 2**31 - 1


@schemathesis.hook
def map_body(context: Any, body: Any) -> Any:
    if not isinstance(body, dict):
        return body
    embeds = context.operation.path.endswith("/embeddings")
    if isinstance(body.get("model"), str) and body["model"]:
        body["model"] = EMBEDDER if embeds else CHAT_MODEL
    if embeds and isinstance(body.get("dimensions"), int):
        body["dimensions"] = NUM_DIMENSIONS
    if isinstance(body.get("stop_token_ids"), list):
        body["stop_token_ids"] = [_token(token) for token in body["stop_token_ids"][:16]]
    if isinstance(body.get("logit_bias"), dict):
        body["logit_bias"] = {_name(name): bias for name, bias in body["logit_bias"].items()}
    if isinstance(body.get("min_tokens"), int | float):
        limits = [body[name] for name in LIMITS if isinstance(body.get(name), int | float)]
        body["min_tokens"] = min([body["min_tokens"], DEFAULT_LIMIT, *limits])
    return body


def _token(given: Any) -> Any:
    is_token = isinstance(given, int | float) and given == int(given) and 0 <= given <= MAX_TOKEN_ID
    return int(given) % NUM_TOKENS if is_token else given


def _name(given: str) -> str:
    return str(int(given) % NUM_TOKENS) if given.isascii() and given.isdigit() and len(given) < 10 else given
