"""What a route of the site's own API says about its refusals in the schema: the error object, and with which statuses.

Knows the shape that every door's errors have; how an error becomes a response is `chatsite.v1.errors`.
"""

from __future__ import annotations

from ninja import Field, Schema
from pydantic import ConfigDict

# Whatever is asked: a value that cannot be used, nobody signed in, a missing scope or CSRF token, and a database that
# is away.
ALWAYS = (400, 401, 403, 503)


class ErrorObject(Schema):
    message: str = Field(description="What went wrong, for people.")
    type: str = Field(description="The kind of error, as OpenAI's clients know it.")
    param: str | None = Field(description="The field that is wrong, where it is one.")
    code: str = Field(description="What went wrong, for programs; all codes are listed in docs/api.md.")


class ErrorOut(Schema):
    """The answer of every refusal."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "error": {
                    "message": "there is no such conversation.",
                    "type": "not_found_error",
                    "param": None,
                    "code": "not_found",
                }
            }
        }
    )

    error: ErrorObject


def refusals(*statuses: int) -> dict[int, type[ErrorOut]]:
    """For the `response` of an operation: those that every operation has, and `statuses`."""
    return dict.fromkeys((*ALWAYS, *statuses), ErrorOut)
