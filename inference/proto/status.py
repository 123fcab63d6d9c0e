"""The one place where engine errors become gRPC statuses and statuses become engine errors.

Knows codes and metadata keys; does not know which call failed or why.
"""

from __future__ import annotations

import math
from typing import Any

import grpc

from inference.errors import (
    BY_CODE,
    ContextLengthExceeded,
    EngineError,
    EngineUnavailable,
    GenerationUnknown,
    InvalidGrammar,
    InvalidRequest,
    ModelLoading,
    NotSupported,
    QueueFull,
    Unauthenticated,
)

CODE_KEY = "rill-code"
RETRY_AFTER_KEY = "rill-retry-after-s"

_STATUS_OF: dict[type[EngineError], grpc.StatusCode] = {
    InvalidRequest: grpc.StatusCode.INVALID_ARGUMENT,
    InvalidGrammar: grpc.StatusCode.INVALID_ARGUMENT,
    ContextLengthExceeded: grpc.StatusCode.OUT_OF_RANGE,
    QueueFull: grpc.StatusCode.RESOURCE_EXHAUSTED,
    ModelLoading: grpc.StatusCode.UNAVAILABLE,
    NotSupported: grpc.StatusCode.UNIMPLEMENTED,
    GenerationUnknown: grpc.StatusCode.NOT_FOUND,
    EngineUnavailable: grpc.StatusCode.UNAVAILABLE,
    Unauthenticated: grpc.StatusCode.UNAUTHENTICATED,
}
# Statuses that gRPC itself makes carry no code of ours.
_ERROR_OF: dict[grpc.StatusCode, type[EngineError]] = {
    grpc.StatusCode.UNAVAILABLE: EngineUnavailable,
    grpc.StatusCode.DEADLINE_EXCEEDED: EngineUnavailable,
    grpc.StatusCode.CANCELLED: EngineUnavailable,
    grpc.StatusCode.UNAUTHENTICATED: Unauthenticated,
    grpc.StatusCode.INVALID_ARGUMENT: InvalidRequest,
    grpc.StatusCode.RESOURCE_EXHAUSTED: InvalidRequest,  # a message above the size limit of the channel
    grpc.StatusCode.UNIMPLEMENTED: NotSupported,
    grpc.StatusCode.NOT_FOUND: GenerationUnknown,
}


def to_status(error: EngineError) -> tuple[grpc.StatusCode, str, tuple[tuple[str, str], ...]]:
    """Status code, text and trailing metadata that carry `error` over the wire."""
    metadata = [(CODE_KEY, error.code)]
    if error.retry_after_s is not None:
        metadata.append((RETRY_AFTER_KEY, f"{error.retry_after_s:.3f}"))
    return _STATUS_OF.get(type(error), grpc.StatusCode.INTERNAL), error.message, tuple(metadata)


def from_status(error: grpc.aio.AioRpcError) -> EngineError:
    """The engine error that a failed call stands for."""
    metadata = _as_dict(error.trailing_metadata())
    text = error.details() or error.code().name
    cls = BY_CODE.get(metadata.get(CODE_KEY, "")) or _ERROR_OF.get(error.code(), EngineError)
    return cls(text, retry_after_s=_seconds(metadata.get(RETRY_AFTER_KEY)))


def _as_dict(metadata: Any) -> dict[str, str]:
    return {str(key): value for key, value in metadata or () if isinstance(value, str)}


def _seconds(raw: str | None) -> float | None:
    try:
        value = float(raw) if raw is not None else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) else None
