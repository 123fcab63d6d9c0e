"""Every error code, with the status that carries it: what the document shows and `docs/api.md` explains.

Knows no door. A test compares this table with the page, and another the page with the code.
"""

from __future__ import annotations

# Codes that end a stream whose status was sent long ago.
IN_STREAM = 0

CODES: dict[str, int] = {
    "invalid_request": 400,
    "invalid_text": 400,
    "invalid_type": 400,
    "invalid_value": 400,
    "missing_required_parameter": 400,
    "unsupported_parameter": 400,
    "out_of_range": 400,
    "array_above_max_length": 400,
    "token_arrays_not_supported": 400,
    "unreadable_file": 400,
    "tools_not_supported": 400,
    "not_supported": 400,
    "invalid_grammar": 400,
    "context_length_exceeded": 400,
    "missing_api_key": 401,
    "invalid_api_key": 401,
    "key_expired": 401,
    "key_revoked": 401,
    "account_disabled": 401,
    "access_ended": 401,
    "unauthenticated": 401,
    "missing_scope": 403,
    "session_required": 403,
    "csrf_failed": 403,
    "forbidden": 403,
    "not_confirmed": 403,
    "staff_only": 403,
    "sharing_off": 403,
    "not_found": 404,
    "model_not_found": 404,
    "unknown_url": 404,
    "method_not_allowed": 405,
    "too_many_keys": 409,
    "name_taken": 409,
    "not_rotatable": 409,
    "rules_changed": 409,
    "still_comparing": 409,
    "not_continuable": 409,
    "still_answering": 409,
    "not_shareable": 409,
    "message_too_long": 413,
    "body_too_large": 413,
    "id_reused": 422,
    "rate_limited": 429,
    "quota_exceeded": 429,
    "internal_error": 500,
    "encoder_failed": 500,
    "cancelled": 500,
    "queue_full": 503,
    "model_loading": 503,
    "engine_unavailable": 503,
    "storage_unavailable": 503,
    "draining": 503,
    "not_cached": 504,
    "engine_restarted": IN_STREAM,
    "deadline_exceeded": IN_STREAM,
    "generation_unknown": IN_STREAM,
    "abandoned": IN_STREAM,
}


def codes_of(status: int) -> list[str]:
    return [code for code, of in CODES.items() if of == status]
