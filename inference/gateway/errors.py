"""What can go wrong with an upstream, as seen by one request.

    UpstreamError
    ├── Busy           it has no room now; the same request may be sent again after `retry_after_s`
    ├── Refused        it does not take this request (400, 413, 422): sending it again does not help
    ├── Unreachable    no connection, or it was closed before the upstream said anything
    └── Broken         anything else: an error of its own, a lost connection, an answer that cannot be read
Knows codes for the front (`inference.errors`), not how requests are sent.
"""

from __future__ import annotations


class UpstreamError(Exception):
    """`code` is what the front reports, empty for its own word for an answer that failed; the message is one line."""

    code = ""

    def __str__(self) -> str:
        return f"{self.code}: {self.args[0]}" if self.code else str(self.args[0])


class Busy(UpstreamError):
    code = "queue_full"

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class Refused(UpstreamError):
    code = "invalid_request"


class Unreachable(UpstreamError):
    code = "engine_unavailable"


class Broken(UpstreamError):
    pass
