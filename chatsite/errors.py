"""Errors of the site: one tree, each with a stable code, an HTTP status and whether trying again may help.

    SiteError
    ├── ReplyRefused         code of its own   the question was not accepted; nothing was stored
    ├── StorageUnavailable   storage_unavailable  the database is away (503)
    ├── InternalError        internal_error    our mistake (500)
    └── RequestError                           the request itself is wrong
        ├── AccessEnded          access_ended      the key or session ended under a request or stream (401)
        ├── InvalidRequest       invalid_request   malformed or impossible values (400)
        ├── InvalidText          invalid_text      NUL or half a surrogate pair in a text (400)
        ├── MessageTooLong       message_too_long  more characters than CHAT_MAX_MESSAGE_CHARS (413)
        ├── NotFound             not_found         unknown, or somebody else's (404)
        ├── NotShareable         not_shareable     temporary, empty, too long, or shared too often (409)
        ├── SharingOff           sharing_off       this site shares nothing by link (403)
        ├── StaffOnly            staff_only        for signed-in staff (403)
        ├── NotContinuable       not_continuable   the answer did not end for want of room (409)
        ├── StillAnswering       still_answering   an answer below it is being made (409)
        └── SameIdOtherText      id_reused         a client_message_id came back with another text (422)

Knows no door: consumers make frames of these, the REST API its own error objects.
"""

from __future__ import annotations

from datetime import datetime


class SiteError(Exception):
    """Base. `message` may be shown to the user."""

    code = "site_error"
    status = 500
    is_retryable = False

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
        self.retry_after_s: float | None = None
        self.resets_at: datetime | None = None


class ReplyRefused(SiteError):
    """`reply` does not take the question: quota, full queue, engine down, not in the cache."""

    def __init__(
        self,
        code: str,
        message: str,
        status: int,
        retry_after_s: float | None = None,
        *,
        is_retryable: bool | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.status = status
        self.retry_after_s = retry_after_s
        self.is_retryable = status in (429, 503) if is_retryable is None else is_retryable


class StorageUnavailable(SiteError):
    code = "storage_unavailable"
    status = 503
    is_retryable = True

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.retry_after_s = 2.0


class InternalError(SiteError):
    code = "internal_error"
    is_retryable = True


class RequestError(SiteError):
    code = "invalid_request"
    status = 400


class AccessEnded(RequestError):
    code = "access_ended"
    status = 401

    def __init__(self) -> None:
        super().__init__("The API key or the session that this began with is not valid any more.")


class InvalidRequest(RequestError):
    code = "invalid_request"


class InvalidText(RequestError):
    code = "invalid_text"


class MessageTooLong(RequestError):
    code = "message_too_long"
    status = 413


class NotFound(RequestError):
    code = "not_found"
    status = 404


class StaffOnly(RequestError):
    code = "staff_only"
    status = 403


class NotShareable(RequestError):
    code = "not_shareable"
    status = 409


class SharingOff(RequestError):
    code = "sharing_off"
    status = 403


class NotContinuable(RequestError):
    code = "not_continuable"
    status = 409


class StillAnswering(RequestError):
    code = "still_answering"
    status = 409


class SameIdOtherText(RequestError):
    code = "id_reused"
    status = 422
