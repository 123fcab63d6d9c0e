"""From what an answer must look like to the text that the grammar library compiles, within bounds.

Knows the three kinds of grammars, the library's language (a dialect of Lark that takes JSON schemas) and what of a
schema would cost without bound. Knows no vocabulary and compiles nothing. The front asks before it accepts a request,
the core again before it compiles: neither trusts the other with its time.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, NoReturn

from inference.types import Grammar

JSON_OBJECT, JSON_SCHEMA, LARK = "json_object", "json_schema", "lark"
MAX_CHARACTERS = {JSON_OBJECT: 0, JSON_SCHEMA: 64 * 1024, LARK: 256 * 1024}
# A multiple is found by counting remainders: so many states, 250 bytes each, are made for it at once.
MAX_DIVISOR = 10_000
MAX_DECIMALS = 12
# A literal is laid out character by character when an answer comes to it: in one step, in which everybody waits.
MAX_LITERAL_CHARACTERS = 8192

# Masks are exactly what the grammar allows: by default they force one spelling of what is certain, in the library's
# guess at the model's tokens.
_HEAD = '%llguidance {"no_forcing": true}\n'
# A small model that may write blanks without end does so until its tokens are used up.
_WHITESPACE = r"[ \t\n\r]{0,32}"
# In place of whatever a schema says there. All else is as the library has it: a keyword that it can't hold an answer to
# is an error, as is a `oneOf` whose branches are not surely apart.
_OPTIONS = {"whitespace_pattern": _WHITESPACE}
_SCHEMA_IN_LARK = re.compile(r"%json\s*")


class GrammarNotUsable(Exception):
    """No answer can be held to this grammar; the text says why."""


def text_of(grammar: Grammar) -> str:
    """What the library compiles. Raises GrammarNotUsable."""
    if grammar.kind not in MAX_CHARACTERS:
        raise GrammarNotUsable(f"there is no grammar of kind {grammar.kind[:40]!r}")
    most = MAX_CHARACTERS[grammar.kind]
    if len(grammar.text) > most:
        raise GrammarNotUsable(f"it has {len(grammar.text)} characters, at most {most} are taken")
    if grammar.kind == LARK:
        return _HEAD + "".join(_with_checked_schemas(grammar.text))
    schema = '{"type": "object"}' if grammar.kind == JSON_OBJECT else grammar.text
    return f"{_HEAD}start: %json {_checked(schema)}"


def _with_checked_schemas(text: str) -> Iterator[str]:
    """The parts of a Lark text, with every schema in it checked and under our options."""
    at = 0
    for match in _SCHEMA_IN_LARK.finditer(text):
        if match.start() < at:
            continue  # inside the schema before it
        try:
            _, end = json.JSONDecoder().raw_decode(text, match.end())
        except (ValueError, RecursionError) as error:
            raise GrammarNotUsable(f"no JSON follows %json: {error}") from error
        yield text[at : match.end()]
        yield _checked(text[match.end() : end])
        at = end
    yield text[at:]


def _checked(text: str) -> str:
    """The schema as the library reads it: what two readers may take for different things is one thing here."""
    try:
        schema = json.loads(text, parse_constant=_no_number)
        json.loads(text, parse_float=Decimal, object_hook=_Multiples().see)
        if not isinstance(schema, dict):
            raise GrammarNotUsable("the schema is no JSON object")
        _check_literals(schema)
        return json.dumps(schema | {"x-guidance": _OPTIONS}, allow_nan=False)
    except RecursionError as error:
        raise GrammarNotUsable("the schema is nested too deeply") from error
    except ValueError as error:
        raise GrammarNotUsable(f"the schema is no JSON: {error}") from error


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


class _Multiples:
    """The multiples that a schema asks for. Those of one value may have to hold together, so all of them do here."""

    def __init__(self) -> None:
        self._least = 1
        self._decimals = 0

    def see(self, fields: dict[str, Any]) -> dict[str, Any]:
        value = fields.get("multipleOf")
        if isinstance(value, int | Decimal) and not isinstance(value, bool):
            self._add(Decimal(value))
        return fields

    def _add(self, value: Decimal) -> None:
        exponent = value.normalize().as_tuple().exponent
        assert isinstance(exponent, int), "JSON has finite numbers only"
        decimals = max(self._decimals, -exponent)
        if value <= 0 or value > MAX_DIVISOR or decimals > MAX_DECIMALS:
            raise GrammarNotUsable(f"multipleOf {value:.20} is out of range")
        least = self._least * 10 ** (decimals - self._decimals)
        self._least, self._decimals = math.lcm(least, int(value.scaleb(decimals))), decimals
        if self._least > MAX_DIVISOR:
            raise GrammarNotUsable(
                f"multipleOf {value} is too fine or too large for what else it has to go with"
            )


def _check_literals(schema: Any) -> None:
    if isinstance(schema, str) and len(schema) > MAX_LITERAL_CHARACTERS:
        raise GrammarNotUsable(f"a text in the schema is longer than {MAX_LITERAL_CHARACTERS} characters")
    for part in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        _check_literals(part)
