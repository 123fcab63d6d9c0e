"""A text or a list of texts, as prompts and what is to be embedded are given. Knows no field and no limit."""

from __future__ import annotations

from typing import Any

from chatsite.v1.errors import ApiError, invalid


def texts_in(given: Any, field: str, noun: str, *, most: int, max_chars: int, no_ids: str) -> list[str]:
    """At least one text, none of them empty. `no_ids` says why token ids are not taken.

    Raises ApiError that names the text which is wrong, as it is found in `field`.
    """
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not texts:
        raise invalid(field, f"The {field} must be a text or a list of texts.", "missing_required_parameter")
    if any(isinstance(text, int | list) for text in texts):
        raise invalid(field, no_ids, "token_arrays_not_supported")
    if len(texts) > most:
        raise invalid(field, f"At most {most} texts are allowed.", "array_above_max_length")
    for index, text in enumerate(texts):
        param = field if text is given else f"{field}[{index}]"
        if not isinstance(text, str) or not text:
            raise invalid(param, f"{noun} must not be empty.")
        if len(text) > max_chars:
            raise ApiError(413, "message_too_long", f"{noun} may have {max_chars} characters.", param=param)
    return texts
