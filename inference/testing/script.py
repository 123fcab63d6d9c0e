"""What a scripted generation does, read from the prompt's last user message.

    /script {"text": "Hello", "delay_ms": 20, "die_after": 3}

Knows the options and their defaults; does not know time or the pipe. Without a script the answer is an echo.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import msgspec

from inference.testing.tokenizer import (
    END_OF_TURN,
    MAX_TOKEN_BYTES,
    START_OF_TURN,
    bytes_of,
    token_of,
    tokens_of,
)

PREFIX = "/script"
ECHO_DELAY_MS = 1.0
_FILLER = ("lorem", "ipsum", "dolor", "sit", "amet", "consectetur", "adipiscing", "elit", "sed", "do")
_USER, _ASSISTANT = list(b"user\n"), list(b"assistant\n")
# In a plan: the token that tells the time.
STAMP = -1


class Script(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`*_after` counts tokens of this answer; None means never. Each piece leaves in one step."""

    text: str | None = None
    tokens: int | None = None  # exactly so many, the text repeated or cut
    pieces: list[str] | None = None  # instead of text: one step each
    hex: list[str] | None = None  # the same as raw bytes, for broken UTF-8
    stamps: int | None = (
        None  # instead of text: so many tokens, each the time when it was made (`testing.stamps`)
    )
    delay_ms: float = 0.0  # before each token
    first_delay_ms: float = 0.0  # before the first one (prefill)
    finish: str = "stop"
    fail_after: int | None = None  # this sequence fails, the core lives
    die_after: int | None = None  # the core ends at once
    hang_after: int | None = None  # the core stands still for ever
    garbage_after: int | None = None  # the core writes bytes that are no frame
    stall_after: int | None = None  # this sequence pauses
    stall_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps of one answer: each is the tokens that leave together."""

    steps: tuple[tuple[int, ...], ...]
    script: Script
    error: str = ""
    is_echo: bool = False


def plan_for(prompt_ids: list[int]) -> Plan:
    """The plan that the last user message asks for, behind what is said of it already; a script that cannot be read
    is a plan that fails."""
    message, begun = last_user_message(prompt_ids), _begun(prompt_ids)
    if not message.startswith(PREFIX):
        return Plan(
            _behind(begun, one_by_one(tokens_of(echo(message)))), Script(delay_ms=ECHO_DELAY_MS), is_echo=True
        )
    try:
        script = msgspec.json.decode(message.removeprefix(PREFIX).strip() or b"{}", type=Script)
        return Plan(_behind(begun, _steps(script)), script)
    except (msgspec.DecodeError, ValueError) as error:
        return Plan((), Script(), error=f"the script cannot be read: {error}")


def echo(message: str) -> str:
    """The answer without a script: deterministic and recognisable."""
    words = message.split()
    return f"You said: {message} ({len(words)} word{'' if len(words) == 1 else 's'})"


def script_text(**options: Any) -> str:
    """The user message that asks for these options."""
    return f"{PREFIX} {json.dumps(options, ensure_ascii=False)}"


def last_user_message(prompt_ids: list[int]) -> str:
    """Found by control tokens, not by their names: a user who types a name does not end the message."""
    turns = _split(prompt_ids, START_OF_TURN)
    users = [turn[len(_USER) :] for turn in turns if turn[: len(_USER)] == _USER]
    message = _split(users[-1], END_OF_TURN)[0] if users else prompt_ids
    return b"".join(map(bytes_of, message)).decode("utf-8", "replace")


def _begun(prompt_ids: list[int]) -> list[int]:
    """What there is of an answer that goes on: the open turn at the end of the prompt, without its header."""
    last = _split(prompt_ids, START_OF_TURN)[-1]
    return last[len(_ASSISTANT) :] if last[: len(_ASSISTANT)] == _ASSISTANT else []


def _behind(begun: list[int], steps: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, ...], ...]:
    """The steps that are left, when the first ones are what was begun."""
    said: list[int] = []
    for number, step in enumerate(steps):
        if said == begun:
            return steps[number:]
        said += step
    return () if said == begun else steps


def _split(ids: list[int], separator: int) -> list[list[int]]:
    parts: list[list[int]] = [[]]
    for token in ids:
        if token == separator:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _steps(script: Script) -> tuple[tuple[int, ...], ...]:
    if script.stamps is not None:
        return ((STAMP,),) * script.stamps
    if script.hex is not None:
        return tuple(tuple(_chunks(bytes.fromhex(piece))) for piece in script.hex)
    if script.pieces is not None:
        return tuple(tuple(_chunks(piece.encode())) for piece in script.pieces)
    tokens = tokens_of(_filler(script.tokens or 0) if script.text is None else script.text)
    if script.tokens is not None and tokens:
        tokens = (tokens * (script.tokens // len(tokens) + 1))[: script.tokens]
    return one_by_one(tokens)


def _filler(num_tokens: int) -> str:
    """At least so many tokens, which never go round in circles: the words are numbered."""
    numbers = range(max(num_tokens, len(_FILLER)))
    return "".join(f"{_FILLER[number % len(_FILLER)]} {number} " for number in numbers)


def one_by_one(tokens: list[int]) -> tuple[tuple[int, ...], ...]:
    return tuple((token,) for token in tokens if token != END_OF_TURN)


def _chunks(raw: bytes) -> list[int]:
    return [token_of(raw[start : start + MAX_TOKEN_BYTES]) for start in range(0, len(raw), MAX_TOKEN_BYTES)]
