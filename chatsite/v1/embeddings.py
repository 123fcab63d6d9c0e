"""`POST /v1/embeddings`: texts in, vectors out, as floats or base64."""

from __future__ import annotations

import base64
import sys
from array import array
from typing import Any

import msgspec
from django.conf import settings
from django.http import HttpRequest, JsonResponse

from chatsite.chat.embedding import embed
from chatsite.chat.turn import Caller
from chatsite.json_body import read_json
from chatsite.v1.catalog import served_embedder
from chatsite.v1.endpoint import endpoint
from chatsite.v1.errors import invalid
from chatsite.v1.limits import limit_headers
from chatsite.v1.schema import convert
from chatsite.v1.texts import texts_in

MAX_TEXTS = 2048
NOT_TEXTS = (
    "Arrays of token ids cannot be embedded here, because they belong to another model's tokenizer. Send texts; "
    "with LangChain's OpenAIEmbeddings set check_embedding_ctx_length=False."
)


class EmbeddingsRequest(msgspec.Struct):
    """The fields that mean something here; the rest is ignored."""

    model: str | None = None
    input: Any = None
    encoding_format: str | None = None
    dimensions: int | None = None


@endpoint("POST", scopes=("embeddings",))
async def embeddings(request: HttpRequest, caller: Caller) -> JsonResponse:
    asked: EmbeddingsRequest = convert(read_json(request), EmbeddingsRequest)
    if not asked.model:
        raise invalid("model", "You must name a model.", "missing_required_parameter")
    if asked.encoding_format not in (None, "float", "base64"):
        raise invalid("encoding_format", "The encoding format must be 'float' or 'base64'.")
    texts = texts_of(asked.input)
    info = await served_embedder(asked.model)
    if asked.dimensions not in (None, info.embedding_dim):
        raise invalid(
            "dimensions", f"This model has {info.embedding_dim} dimensions.", "unsupported_parameter"
        )
    result, standings = await embed(caller, texts)
    encode = _base64 if asked.encoding_format == "base64" else list
    vectors = [
        {"object": "embedding", "index": i, "embedding": encode(v)} for i, v in enumerate(result.vectors)
    ]
    usage = {"prompt_tokens": result.num_tokens, "total_tokens": result.num_tokens}
    body = {"object": "list", "data": vectors, "model": info.embedder, "usage": usage}
    return JsonResponse(body, headers=limit_headers(standings))


def texts_of(given: Any) -> list[str]:
    """The texts to embed. Raises ApiError that names the one that is wrong."""
    most = settings.CONFIG.max_message_chars
    return texts_in(given, "input", "A text to embed", most=MAX_TEXTS, max_chars=most, no_ids=NOT_TEXTS)


def _base64(vector: array[float]) -> str:
    """Little-endian float32, as the official client decodes it."""
    if sys.byteorder == "big":
        vector = array("f", vector)
        vector.byteswap()
    return base64.b64encode(vector.tobytes()).decode()
