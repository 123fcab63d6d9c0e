"""The error object and its headers, for refusals that are hard to bring about from outside."""

from __future__ import annotations

import json

import pytest

from chatsite.errors import ReplyRefused
from chatsite.v1.errors import ApiError, from_engine, from_site, response_of
from inference.errors import (
    ContextLengthExceeded,
    EngineError,
    EngineUnavailable,
    InvalidRequest,
    ModelLoading,
    QueueFull,
    Unauthenticated,
)


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        (QueueFull("full", retry_after_s=2.2), 503, "server_error"),
        (ModelLoading("starting"), 503, "server_error"),
        (EngineUnavailable("gone"), 503, "server_error"),
        (InvalidRequest("no"), 400, "invalid_request_error"),
        (ContextLengthExceeded("long"), 400, "invalid_request_error"),
        (Unauthenticated("our own token is wrong"), 500, "server_error"),
    ],
)
def test_errors_of_the_engine_have_their_status(error: EngineError, status: int, kind: str) -> None:
    response = response_of(from_engine(error))
    assert response.status_code == status
    told = json.loads(response.content)["error"]
    assert told == {"message": error.message, "type": kind, "param": None, "code": error.code}
    assert ("Retry-After" in response) is (status == 503)


def test_the_time_to_come_back_is_never_too_early() -> None:
    assert response_of(from_engine(QueueFull("full", retry_after_s=2.2)))["Retry-After"] == "3"
    assert response_of(from_site(ReplyRefused("rate_limited", "no", 429, 0.1)))["Retry-After"] == "1"


def test_clients_are_told_not_to_repeat_what_cannot_help() -> None:
    assert response_of(ApiError(500, "internal_error", "x"))["x-should-retry"] == "false"
    assert response_of(ApiError(504, "not_cached", "x"))["x-should-retry"] == "false"
    assert "x-should-retry" not in response_of(ApiError(503, "queue_full", "x"))
    assert "x-should-retry" not in response_of(ApiError(400, "invalid_value", "x"))
