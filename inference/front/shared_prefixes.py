"""From the operator's file of system prompts to the token ids that prompts with them begin with.

Knows the file's form, and that a prefix must end before the first token that a user's text can change. Does not know
when a prefix is worth sharing: the core measures that.
"""

from __future__ import annotations

import json
from itertools import takewhile
from pathlib import Path

from inference.core.messages import DeclaredPrefix
from inference.errors import InvalidRequest
from inference.front.prompts import PromptBuilder
from inference.types import Segment

MAX_PREFIXES = 100
# First words of a user. They share no first byte, and each joins what the template writes before it in a way of its
# own, so a token that depends on the user's text differs in one of them.
OPENINGS = ("Hi", "1", "\u4f60", "\n", " a", "<", "\u00e9", "the", '"')


class SharedPrefixesError(Exception):
    """The file cannot be used; the text is one line that says why."""


def read_shared_prefixes(path: str, prompts: PromptBuilder) -> list[DeclaredPrefix]:
    """What the file at `path` declares; nothing for an empty path. Raises SharedPrefixesError."""
    if not path:
        return []
    return [_declared(name, text, prompts) for name, text in _read(Path(path)).items()]


def _read(path: Path) -> dict[str, str]:
    try:
        texts: dict[str, str] = json.loads(
            path.read_text(encoding="utf-8"), object_pairs_hook=_without_repeats
        )
    except OSError as error:
        raise SharedPrefixesError(
            f"ENGINE_SHARED_PREFIXES={path} cannot be read: {error.strerror}"
        ) from error
    except ValueError as error:
        raise SharedPrefixesError(f"ENGINE_SHARED_PREFIXES={path} is not JSON: {error}") from error
    is_usable = isinstance(texts, dict) and all(
        isinstance(text, str) and text.strip() for text in texts.values()
    )
    if not is_usable:
        raise SharedPrefixesError(
            f"ENGINE_SHARED_PREFIXES={path} must hold one object: names and their system prompts"
        )
    if len(texts) > MAX_PREFIXES:
        raise SharedPrefixesError(
            f"ENGINE_SHARED_PREFIXES={path} holds {len(texts)} prompts; {MAX_PREFIXES} at most"
        )
    return texts


def _without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """JSON allows a name twice and keeps the last; here that is a mistake of somebody's."""
    names = [name for name, _ in pairs]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(f"the name {repeated[0]!r} stands there twice")
    return dict(pairs)


def _declared(name: str, text: str, prompts: PromptBuilder) -> DeclaredPrefix:
    try:
        beginnings = [
            prompts.build([Segment("system", text), Segment("user", opening)]).ids for opening in OPENINGS
        ]
    except InvalidRequest as error:
        raise SharedPrefixesError(f"ENGINE_SHARED_PREFIXES: {name!r} cannot be used: {error}") from error
    tokens_by_place = zip(*beginnings, strict=False)
    ids = [tokens[0] for tokens in takewhile(lambda tokens: len(set(tokens)) == 1, tokens_by_place)]
    if not ids:
        raise SharedPrefixesError(f"ENGINE_SHARED_PREFIXES: no two prompts begin alike with {name!r}")
    return DeclaredPrefix(name, ids)
