"""Errors of the inference package: one tree, each with a stable code.

    EngineError
    ├── RequestRefused            the request was never accepted
    │   ├── InvalidRequest            invalid_request           malformed or impossible values
    │   ├── InvalidGrammar            invalid_grammar           no answer can be held to it
    │   ├── ContextLengthExceeded     context_length_exceeded   prompt (+ answer) can never fit
    │   ├── QueueFull                 queue_full                try again after `retry_after_s`
    │   ├── ModelLoading              model_loading             the core is starting
    │   └── NotSupported              not_supported             this back end cannot do it
    ├── GenerationUnknown         generation_unknown        no log under that id (ended long ago, or another front)
    ├── EncoderFailed             encoder_failed            an encoder could not read a text: the engine's fault
    ├── EngineUnavailable         engine_unavailable        no connection, or the deadline passed
    └── Unauthenticated           unauthenticated           wrong or missing token
Knows codes and texts; does not know transports (`front.server` and `client` translate to and from gRPC status).
"""

from __future__ import annotations


class EngineError(Exception):
    """Base. `code` is stable and may be shown to users; `retryable` says whether the same call may succeed later."""

    code = "engine_error"
    retryable = False

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.retry_after_s = retry_after_s


class RequestRefused(EngineError):
    code = "refused"


class InvalidRequest(RequestRefused):
    code = "invalid_request"


class InvalidGrammar(RequestRefused):
    code = "invalid_grammar"


class ContextLengthExceeded(RequestRefused):
    code = "context_length_exceeded"


class QueueFull(RequestRefused):
    code = "queue_full"
    retryable = True


class ModelLoading(RequestRefused):
    code = "model_loading"
    retryable = True


class NotSupported(RequestRefused):
    code = "not_supported"


class GenerationUnknown(EngineError):
    code = "generation_unknown"


class EncoderFailed(EngineError):
    code = "encoder_failed"


class EngineUnavailable(EngineError):
    code = "engine_unavailable"
    retryable = True


class Unauthenticated(EngineError):
    code = "unauthenticated"


BY_CODE: dict[str, type[EngineError]] = {
    cls.code: cls
    for cls in (
        InvalidRequest, InvalidGrammar, ContextLengthExceeded, QueueFull, ModelLoading, NotSupported,
        GenerationUnknown, EncoderFailed, EngineUnavailable, Unauthenticated,
    )
}  # fmt: skip
