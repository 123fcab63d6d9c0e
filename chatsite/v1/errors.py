"""Errors as OpenAI clients expect them: `{"error": {message, type, param, code}}`, whatever went wrong.

Knows HTTP statuses and the two trees of errors behind the door; does not know what was asked.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping

from django.db import InterfaceError, OperationalError
from django.http import JsonResponse

from chatsite.accounts.quotas.refusals import QuotaExceeded
from chatsite.chat.events import Ended
from chatsite.chat.models import State
from chatsite.errors import SiteError, StorageUnavailable
from chatsite.v1.limits import limit_headers
from inference.errors import EngineError

logger = logging.getLogger(__name__)

RETRY_AFTER_S = 1.0
TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}
ENGINE_STATUS = {
    "invalid_request": 400,
    "invalid_grammar": 400,
    "context_length_exceeded": 400,
    "not_supported": 400,
    "queue_full": 503,
    "model_loading": 503,
    "engine_unavailable": 503,
}


class ApiError(Exception):
    """What the client is told. `param` names the field that is wrong, as a path such as messages[0].content."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        param: str | None = None,
        retry_after_s: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.param = param
        self.headers = headers or {}
        self.retry_after_s = retry_after_s if retry_after_s is not None or status != 503 else RETRY_AFTER_S


def invalid(param: str | None, message: str, code: str = "invalid_value") -> ApiError:
    """A 400 that names its field."""
    return ApiError(400, code, message, param=param)


def from_site(error: SiteError) -> ApiError:
    headers = limit_headers(error.standings) if isinstance(error, QuotaExceeded) else None
    return ApiError(
        error.status, error.code, error.message, retry_after_s=error.retry_after_s, headers=headers
    )


def from_engine(error: EngineError) -> ApiError:
    return from_code(error.code, error.message, retry_after_s=error.retry_after_s)


def from_code(code: str, message: str, *, retry_after_s: float | None = None) -> ApiError:
    """The error behind a code of the engine's tree; a code without a status of its own is the server's fault."""
    return ApiError(ENGINE_STATUS.get(code, 500), code, message, retry_after_s=retry_after_s)


def told_of(error: Exception, where: str) -> ApiError:
    """What a client is told about any exception that came up in `where`; mistakes of ours are logged."""
    match error:
        case ApiError():
            return error
        case SiteError():
            return from_site(error)
        case EngineError():
            return from_engine(error)
        case OperationalError() | InterfaceError():
            logger.warning("%s met a database that is away: %s", where, error)
            return from_site(StorageUnavailable("The server cannot store or read anything now."))
    logger.error("unexpected error in %s", where, exc_info=error)
    return ApiError(500, "internal_error", "The server made a mistake.")


def failure_of(ended: Ended) -> ApiError | None:
    """None for a complete answer; every other end is an error, so that no client takes a part for the whole."""
    if ended.state is State.COMPLETE:
        return None
    if ended.state is State.STOPPED:
        return stopped()
    code = ended.error_code or ended.state.value
    return from_code(code, ended.error_message or "The answer could not be finished.")


def stopped() -> ApiError:
    """Somebody ended the answer."""
    return ApiError(500, "cancelled", "The answer was stopped before its end.")


def body_of(error: ApiError) -> dict[str, dict[str, str | None]]:
    kind = TYPES.get(error.status, "invalid_request_error" if error.status < 500 else "server_error")
    return {"error": {"message": error.message, "type": kind, "param": error.param, "code": error.code}}


def response_of(error: ApiError) -> JsonResponse:
    response = JsonResponse(body_of(error), status=error.status, headers=error.headers)
    if error.retry_after_s is not None:
        response["Retry-After"] = str(max(1, math.ceil(error.retry_after_s)))
    elif error.status >= 500:
        # Clients repeat every 5xx by default; without a Retry-After nothing says that it would help.
        response["x-should-retry"] = "false"
    return response
