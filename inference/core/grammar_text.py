"""From what an answer must look like to the text that the grammar library compiles.

Knows the three kinds of grammars, the library's language (a dialect of Lark that takes JSON schemas) and what may not
be in a schema because an answer would stand still over it. Knows no vocabulary and compiles nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from inference.types import JSON_OBJECT, JSON_SCHEMA, LARK, Grammar

MAX_CHARACTERS = {JSON_OBJECT: 0, JSON_SCHEMA: 64 * 1024, LARK: 256 * 1024}
# Both are worked through in one step when an answer comes to them, and everybody waits: 10 ms on one core.
MAX_LITERAL_CHARACTERS = 8192
MAX_PROPERTIES = 1000

# Masks are exactly what the grammar allows: by default they force one spelling of what is certain, in the library's
# guess at the model's tokens.
_HEAD = '%llguidance {"no_forcing": true}\n'
# In place of whatever a schema says there. All else is as the library has it: a keyword that it can't hold an answer to
# is an error, as is a `oneOf` whose branches are not surely apart. Blanks are bounded because a small model that may
# write them without end does so until its tokens are used up.
_OPTIONS = {"whitespace_pattern": r"[ \t\n\r]{0,32}"}
_SCHEMA_IN_LARK = re.compile(r"%json\s*")


class GrammarNotUsable(Exception):
    """No answer can be held to this grammar; the text says why."""


def text_of(grammar: Grammar) -> str:
    """What the library compiles. Raises GrammarNotUsable."""
    return _HEAD + rules_of(grammar, _OPTIONS)


def rules_of(grammar: Grammar, options: Mapping[str, Any]) -> str:
    """The same without what is said to this library only: others read Lark with `%json`, too, and leave the library's
    `options` in a schema alone. Raises GrammarNotUsable."""
    check_size(grammar)
    if grammar.kind == LARK:
        return "".join(_with_options(grammar.text, options))
    schema = '{"type": "object"}' if grammar.kind == JSON_OBJECT else grammar.text
    return f"start: %json {_read_again(schema, options)}"


def check_size(grammar: Grammar) -> None:
    """Raises GrammarNotUsable for an unknown kind and for what is too long to be looked at."""
    if grammar.kind not in MAX_CHARACTERS:
        raise GrammarNotUsable(f"there is no grammar of kind {grammar.kind[:40]!r}")
    most = MAX_CHARACTERS[grammar.kind]
    if len(grammar.text) > most:
        raise GrammarNotUsable(f"it has {len(grammar.text)} characters, at most {most} are taken")


def _with_options(text: str, options: Mapping[str, Any]) -> Iterator[str]:
    """The parts of a Lark text, with the options in every schema."""
    at = 0
    for match in _SCHEMA_IN_LARK.finditer(text):
        if match.start() < at:
            continue  # a word inside the schema before it
        try:
            _, end = json.JSONDecoder().raw_decode(text, match.end())
        except (ValueError, RecursionError) as error:
            raise GrammarNotUsable(f"no JSON follows %json: {error}") from error
        yield text[at : match.end()]
        yield _read_again(text[match.end() : end], options)
        at = end
    yield text[at:]


def _read_again(text: str, options: Mapping[str, Any]) -> str:
    """The schema, checked and with the options: what two readers may take for different things is one thing now."""
    try:
        schema = json.loads(text, parse_constant=_no_number)
        if not isinstance(schema, dict):
            raise GrammarNotUsable("the schema is no JSON object")
        _check_sizes(schema)
        return json.dumps(schema | {"x-guidance": options}, allow_nan=False)
    except RecursionError as error:
        raise GrammarNotUsable("the schema is nested too deeply") from error
    except ValueError as error:
        raise GrammarNotUsable(f"the schema is no JSON: {error}") from error


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


def _check_sizes(schema: Any) -> None:
    match schema:
        case str() if len(schema) > MAX_LITERAL_CHARACTERS:
            raise GrammarNotUsable(f"a text in the schema is longer than {MAX_LITERAL_CHARACTERS} characters")
        case dict() if len(schema) > MAX_PROPERTIES:
            raise GrammarNotUsable(f"an object in the schema has more than {MAX_PROPERTIES} fields")
        case dict():
            for part in schema.values():
                _check_sizes(part)
        case list():
            for part in schema:
                _check_sizes(part)
