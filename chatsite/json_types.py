"""What a JSON body under /api may hold where a number, a truth value or words are wanted: JSON's own, and nothing else.

pydantic by itself takes true for 1 and "5" for 5, which no schema says, and of which nobody is told. Queries and forms
are texts, and stay with its ways. Knows no field.
"""

from __future__ import annotations

import re
from typing import Annotated, TypeVar

from ninja import Path
from pydantic import BeforeValidator, Strict
from pydantic_core import PydanticCustomError

T = TypeVar("T")


def _number(value: T) -> T:
    if isinstance(value, bool | str):
        raise PydanticCustomError("number_type", "Input should be a number")
    return value


def _one_address(value: T) -> T:
    if isinstance(value, str) and not re.fullmatch("[1-9][0-9]*", value):
        raise PydanticCustomError("int_parsing", "Input should be a whole number")
    return value


# The pattern of a text that is not blank. Of what Python strips, engines of other languages do not take all for blanks.
SAYS_SOMETHING = r"[^\s\x1c-\x1f\x85]"
Flag = Annotated[bool, Strict()]
# Stands behind the limits of an int or a float, which else would be lost to the schema. 16.0 is 16, as at /v1: JSON
# knows one kind of numbers.
AS_NUMBER = BeforeValidator(_number)
# A row by its number in a path. It has one address: 1.0 and 01 name none.
RowId = Annotated[int, Path(ge=1, lt=2**63), BeforeValidator(_one_address)]
