"""From what people write in Python to the engine's requests: histories, sampling, owners.

Knows the forms that a prompt may have. Does not know the model; what only the engine can check (roles, ranges, lengths)
is left to it. Every objection is an InvalidRequest that names the prompt by its place.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from inference.errors import InvalidRequest
from inference.proto import convert
from inference.types import GenerateRequest, Owner, Sampling, Segment

Message: TypeAlias = Segment | Mapping[str, str]
# Text alone is one message of a user; else the history, oldest message first.
Prompt: TypeAlias = str | Sequence[Message]

TENANT, USER = "library", "library"
MESSAGE_FIELDS = {"role", "content"}


def as_requests(
    prompts: Sequence[Prompt] | str,
    sampling: Sampling | Sequence[Sampling] | None,
    conversation: str | Sequence[str],
    fields: Mapping[str, Any],
) -> list[GenerateRequest]:
    """One request per prompt, in order. `fields` are fields of Sampling that hold for all of them."""
    prompts = _as_list(prompts)
    chosen = _for_each(Sampling() if sampling is None else sampling, Sampling, len(prompts), "samplings")
    conversations = _for_each(conversation, str, len(prompts), "conversations")
    _check_conversations(conversations)
    _check_names(fields)
    return [
        _as_request(place, prompt, replace(own, **fields), key)
        for place, (prompt, own, key) in enumerate(zip(prompts, chosen, conversations, strict=True))
    ]


def as_texts(texts: Any) -> list[str]:
    """What is to be embedded, each of it text that can be encoded."""
    if isinstance(texts, str | bytes | Mapping) or not isinstance(texts, Iterable):
        raise InvalidRequest(f"embed takes a list of texts, not {_kind(texts)}")
    each = list(texts)
    for place, text in enumerate(each):
        if not isinstance(text, str):
            raise InvalidRequest(f"text {place} is no text but {_kind(text)}")
        if not text.isascii():
            _check_encodable(place, text)
    return each


def named(error: Exception, place: int) -> str:
    """What an error says, with the place of the prompt that it is about."""
    return f"prompt {place}: {error}"


def _as_request(place: int, prompt: Prompt, sampling: Sampling, conversation: str) -> GenerateRequest:
    request = GenerateRequest(
        generation_id=str(uuid.uuid4()),
        segments=_as_segments(place, prompt),
        owner=Owner(TENANT, USER, conversation),
        sampling=sampling,
        is_offline=True,
    )
    _check_types(place, sampling)
    try:  # the form that requests have at the engine's door says of which type every value must be
        return convert.request_from_pb(convert.request_to_pb(request))
    except convert.UNSENDABLE as error:
        raise InvalidRequest(named(error, place)) from error


def _as_list(prompts: Any) -> list[Any]:
    if isinstance(prompts, str):
        return [prompts]
    if isinstance(prompts, Segment | Mapping | bytes) or not isinstance(prompts, Iterable):
        raise InvalidRequest(f"generate takes a list of prompts, not {_kind(prompts)}")
    return list(prompts)


def _check_names(fields: Mapping[str, Any]) -> None:
    unknown = sorted(set(fields) - set(Sampling.__dataclass_fields__))
    if unknown:
        raise InvalidRequest(f"there is no sampling value {unknown[0]!r}; see inference.types.Sampling")


def _check_types(place: int, sampling: Sampling) -> None:
    if isinstance(sampling.stop, str):
        raise InvalidRequest(f"prompt {place}: stop is a list of texts, not text")
    for name in Sampling.__dataclass_fields__:
        value = getattr(sampling, name)
        try:
            convert.sampling_to_pb(Sampling(**{name: value}))
        except convert.UNSENDABLE as error:
            raise InvalidRequest(f"prompt {place}: {name} cannot be {value!r}") from error


def _as_segments(place: int, prompt: Prompt) -> tuple[Segment, ...]:
    if isinstance(prompt, str):
        return (Segment("user", prompt),)
    if isinstance(prompt, Segment | Mapping):
        raise InvalidRequest(f"prompt {place} is a message; a history is a list of its own: [[message, ...]]")
    if not isinstance(prompt, list | tuple):
        raise InvalidRequest(f"prompt {place} is text or a list of messages, not {_kind(prompt)}")
    return tuple(_as_segment(place, message) for message in prompt)


def _as_segment(place: int, message: object) -> Segment:
    segment = message if isinstance(message, Segment) else _read_message(place, message)
    for name, value in (("role", segment.role), ("content", segment.text)):
        if not isinstance(value, str):
            raise InvalidRequest(f"prompt {place}: the {name} of a message is text, not {_kind(value)}")
    return segment


def _read_message(place: int, message: object) -> Segment:
    if not isinstance(message, Mapping):
        raise InvalidRequest(f"prompt {place}: a message is a Segment or a dict, not {_kind(message)}")
    if set(message) != MESSAGE_FIELDS:
        raise InvalidRequest(
            f"prompt {place}: a message has the keys role and content, not {sorted(map(str, message))}"
        )
    return Segment(message["role"], message["content"])


def _for_each(given: Any, kind: type, number: int, name: str) -> list[Any]:
    """`given` for every prompt, or one of them for each."""
    if isinstance(given, kind):
        return [given] * number
    each = list(given) if isinstance(given, list | tuple) else []
    if len(each) != number or not all(isinstance(one, kind) for one in each):
        raise InvalidRequest(f"{number} prompts need one or {number} {name}")
    return each


def _check_encodable(place: int, text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidRequest(f"text {place}: {error}") from error


def _check_conversations(keys: Sequence[str]) -> None:
    """Turns of one conversation follow one another; together they would race for its kept KV."""
    named_keys = [key for key in keys if key]
    if len(set(named_keys)) != len(named_keys):
        raise InvalidRequest(
            "two prompts of one call belong to the same conversation; ask one after the other"
        )


def _kind(value: object) -> str:
    return type(value).__name__
