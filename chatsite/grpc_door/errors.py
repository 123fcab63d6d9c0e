"""Errors of the REST doors as gRPC statuses. Knows both; does not know what was asked."""

from __future__ import annotations

import grpc

from chatsite.grpc_door import chat_pb2 as pb
from chatsite.v1.errors import ApiError
from inference.proto.status import CODE_KEY, RETRY_AFTER_KEY

STATUSES = {
    400: grpc.StatusCode.INVALID_ARGUMENT,
    401: grpc.StatusCode.UNAUTHENTICATED,
    403: grpc.StatusCode.PERMISSION_DENIED,
    404: grpc.StatusCode.NOT_FOUND,
    413: grpc.StatusCode.INVALID_ARGUMENT,
    422: grpc.StatusCode.INVALID_ARGUMENT,
    429: grpc.StatusCode.RESOURCE_EXHAUSTED,
    503: grpc.StatusCode.UNAVAILABLE,
    504: grpc.StatusCode.FAILED_PRECONDITION,  # only-if-cached, and it is not
}


def status_of(error: ApiError) -> tuple[grpc.StatusCode, str, tuple[tuple[str, str], ...]]:
    """Status, text and trailing metadata of a call that ends with `error`."""
    metadata = [(CODE_KEY, error.code)]
    if error.retry_after_s is not None:
        metadata.append((RETRY_AFTER_KEY, f"{error.retry_after_s:.3f}"))
    return STATUSES.get(error.status, grpc.StatusCode.INTERNAL), error.message, tuple(metadata)


def failed_of(error: ApiError) -> pb.Failed:
    """The end of one question on a stream that goes on."""
    return pb.Failed(
        code=error.code,
        message=error.message,
        status=error.status,
        param=error.param or "",
        retry_after_s=error.retry_after_s,
    )
