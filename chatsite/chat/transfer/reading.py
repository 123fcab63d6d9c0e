"""From a file to conversations that can be stored, or to an error that says where and why not.

Knows which of the two forms a file has, and what every tree must keep to. Knows no rows.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
from pydantic import ValidationError

from chatsite.chat.schemas.conversations import Parameters
from chatsite.chat.transfer import chatgpt
from chatsite.chat.transfer.form import File, Talk, Turn
from chatsite.errors import RequestError

YEARS = range(1970, 3000)


class UnreadableFile(RequestError):
    code = "unreadable_file"
    status = 400


def talks_of(value: Any) -> list[Talk]:
    """The conversations of a decoded file: ours is an object, ChatGPT's a list. Raises UnreadableFile."""
    try:
        is_theirs = isinstance(value, list)
        talks = chatgpt.talks_of(value) if is_theirs else msgspec.convert(value, File).conversations
    except msgspec.ValidationError as error:
        raise UnreadableFile(f"The file cannot be imported: {error}") from error
    for place, talk in enumerate(talks):
        _check(talk, f"conversations[{place}]")
    return talks


def _check(talk: Talk, where: str) -> None:
    for name, moment in (("created_at", talk.created_at), ("updated_at", talk.updated_at)):
        _check_moment(moment, f"{where}.{name}")
    known: dict[int, Turn] = {}
    for place, turn in enumerate(talk.messages):
        _check_turn(turn, known, f"{where}.messages[{place}]")
        known[turn.number] = turn
    if talk.active is not None and (talk.active not in known or known[talk.active].role != "assistant"):
        raise UnreadableFile(f"{where}.active is no answer of this conversation.")
    if len(set(talk.tags)) < len(talk.tags) or any(tag != tag.strip() for tag in talk.tags):
        raise UnreadableFile(f"{where}.tags has one twice, or one with blanks around it.")
    try:
        Parameters.model_validate(talk.parameters, strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"]))
        raise UnreadableFile(f"{where}.parameters.{name}: {first['msg']}.") from error


def _check_turn(turn: Turn, known: dict[int, Turn], where: str) -> None:
    _check_moment(turn.created_at, f"{where}.created_at")
    if turn.number in known:
        raise UnreadableFile(f"{where}.number is another message's already.")
    if turn.parent is not None and turn.parent not in known:
        raise UnreadableFile(f"{where}.parent names no message that comes before it.")
    if turn.parent is not None and known[turn.parent].role == turn.role:
        raise UnreadableFile(f"{where}.parent is of the same side; questions and answers take turns.")
    if turn.role == "user" and (turn.state != "complete" or turn.made or turn.feedback):
        raise UnreadableFile(f"{where} is a question, which is complete, made by nobody and not rated.")


def _check_moment(moment: datetime, where: str) -> None:
    if moment.year not in YEARS:
        raise UnreadableFile(f"{where} is not between {YEARS.start} and {YEARS.stop - 1}.")
