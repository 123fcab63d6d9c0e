"""`/v1/models`: what the engine serves, and the check that a request names it."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, JsonResponse

from chatsite import engines
from chatsite.chat.turn import Caller
from chatsite.served import Served
from chatsite.v1.endpoint import endpoint
from chatsite.v1.errors import ApiError
from inference.types import EngineInfo

SCOPES = ("chat", "embeddings")
OWNER = "rill"


@endpoint("GET", SCOPES)
async def list_models(request: HttpRequest, caller: Caller) -> JsonResponse:
    return JsonResponse({"object": "list", "data": [_model(name) for name in _names(await served())]})


@endpoint("GET", SCOPES)
async def retrieve_model(request: HttpRequest, caller: Caller, name: str) -> JsonResponse:
    if name not in _names(await served()):
        raise _unknown(name)
    return JsonResponse(_model(name))


async def served(model: str = "") -> Served:
    """What the engines serve. Raises ApiError (503) while none was ever reached."""
    known = await engines.served(model)
    if not known.infos:
        raise _unreached()
    return known


async def served_chat_model(name: str) -> EngineInfo:
    """The engine that serves chat model `name`. Raises ApiError 404 for another name."""
    known = await served(name)
    info = known.named(name)
    if info is None:
        raise _unknown(name) if known.is_all else _unreached()
    return info


async def served_embedder(name: str) -> EngineInfo:
    """The engine that serves embedding model `name`. Raises ApiError 404 for another name."""
    known = await served()
    info = known.encoder
    if info is None or name != info.embedder:
        raise _unknown(name) if known.is_all else _unreached()
    return info


def _names(known: Served) -> list[str]:
    """Every chat model, then the one embedder that the whole site uses."""
    return [name for name in (*(info.model for info in known.models), known.embedder) if name]


def _model(name: str) -> dict[str, Any]:
    # A model has no birthday here; the field is required, and a fixed value keeps answers equal.
    return {"id": name, "object": "model", "created": 0, "owned_by": OWNER}


def _unreached() -> ApiError:
    return ApiError(503, "engine_unavailable", "The engine cannot be reached; try again in a moment.")


def _unknown(name: str) -> ApiError:
    return ApiError(404, "model_not_found", f"The model '{name[:200]}' is not served here.", param="model")
