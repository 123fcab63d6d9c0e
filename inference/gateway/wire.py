"""What an OpenAI-compatible engine answers: chunks of a streamed completion, the list of models, errors.

Knows field names and their forms in vLLM and its like. Fields that we do not use are ignored; values that would harm
us (an id that is no id) make the whole chunk unreadable.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

MAX_ERROR_CHARACTERS = 300
UNREADABLE = (msgspec.DecodeError, RecursionError)  # the second: of thousands of brackets

Count = Annotated[int, msgspec.Meta(ge=0, lt=2**31)]
TokenId = Annotated[int, msgspec.Meta(ge=0, lt=2**31)]


class Logprobs(msgspec.Struct, frozen=True):
    token_logprobs: list[float | None] = []
    top_logprobs: list[dict[str, float] | None] | None = None


class Choice(msgspec.Struct, frozen=True):
    text: str = ""
    token_ids: list[TokenId] | None = None  # None: this server gives no ids
    logprobs: Logprobs | None = None
    finish_reason: str | None = None


class PromptDetails(msgspec.Struct, frozen=True):
    cached_tokens: Count | None = None


class Usage(msgspec.Struct, frozen=True):
    prompt_tokens_details: PromptDetails | None = None

    @property
    def cached_tokens(self) -> int | None:
        return self.prompt_tokens_details.cached_tokens if self.prompt_tokens_details else None


class Chunk(msgspec.Struct, frozen=True):
    choices: list[Choice] = []
    usage: Usage | None = None
    error: Any = None
    object: str = ""
    message: str = ""


class ModelCard(msgspec.Struct, frozen=True):
    id: str
    root: str | None = None
    max_model_len: Count | None = None


class ModelList(msgspec.Struct, frozen=True):
    data: list[ModelCard]


_chunks = msgspec.json.Decoder(Chunk)
_models = msgspec.json.Decoder(ModelList)


def read_chunk(data: bytes | str) -> Chunk:
    """Raises one of UNREADABLE."""
    return _chunks.decode(data)


def read_models(body: bytes) -> list[ModelCard]:
    """Raises one of UNREADABLE."""
    return _models.decode(body).data


def error_in(chunk: Chunk) -> str:
    """The error that a chunk carries instead of tokens; empty when it carries none."""
    if chunk.error is not None:
        return _text_of(chunk.error)
    return _shortened(chunk.message) if chunk.object == "error" else ""


def error_text(body: bytes) -> str:
    """What an error's body says, whichever of the usual forms it has."""
    try:
        fields = msgspec.json.decode(body)
    except UNREADABLE:
        return _shortened(body.decode("utf-8", "replace"))
    if isinstance(fields, dict):
        fields = next((fields[name] for name in ("error", "message", "detail") if fields.get(name)), fields)
    return _text_of(fields)


def _text_of(error: Any) -> str:
    if isinstance(error, dict) and isinstance(error.get("message"), str):
        return _shortened(error["message"])
    return _shortened(str(error))


def _shortened(text: str) -> str:
    return " ".join(text.split())[:MAX_ERROR_CHARACTERS]
