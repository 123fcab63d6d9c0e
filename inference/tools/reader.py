"""Calls and text out of an answer as it comes, cut anywhere.

A call leaves when its JSON is complete and calls a function that was offered; all else is text in the end, also what
only began like a call. So the parts of a stream join to what the whole answer gives. Linear in the answer's length.
Knows formats (`tools.formats`). Does not know ids, tokens or events.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from enum import Enum, auto

from inference.tools.calls import Call, object_in, written
from inference.tools.formats import CallFormat

_OUTSIDE = re.compile(r'["{}\[\]]')
_IN_STRING = re.compile(r'["\\]')
_BLANKS = re.compile(r"\s*")
_BLANK = " \t\r\n"

Part = str | Call


class _State(Enum):
    TEXT = auto()  # a call may begin at every opening
    BEGINNING = auto()  # nothing but blanks and calls was there, in a format without openings
    OBJECT = auto()  # behind an opening: the JSON of a call
    CLOSING = auto()  # behind the JSON
    PLAIN = auto()  # no more calls: the rest is text
    OVER = auto()  # there were as many calls as may be: the rest is dropped


class CallReader:
    """`names` are the functions that may be called; after `most` calls nothing more is said."""

    def __init__(self, form: CallFormat, names: Collection[str], most: int | None = None) -> None:
        self._form = form
        self._names = frozenset(names)
        self._most = most
        self._num_calls = 0
        self._state = self._between_calls = _State.TEXT if form.opening else _State.BEGINNING
        self._behind_object = _State.CLOSING if form.closing else self._between_calls
        self._blanks = _BLANK + (form.between if not form.opening else "")  # between calls
        self._held = ""  # not yet known to be text or call
        self._scan = _ObjectScan()

    def read(self, text: str) -> list[Part]:
        """What is certain by now. Texts are never empty."""
        self._held += text
        parts: list[Part] = []
        while self._step(parts, is_end=False):
            pass
        return _joined(parts)

    def end(self) -> list[Part]:
        """The rest; nothing may be read afterwards."""
        parts: list[Part] = []
        while self._step(parts, is_end=True):
            pass
        if self._state is not _State.OVER and not (self._num_calls and not self._held.strip(self._blanks)):
            parts.append(self._held)
        self._held = ""
        return _joined(parts)

    def _step(self, parts: list[Part], *, is_end: bool) -> bool:
        """One move; False when more text is needed."""
        match self._state:
            case _State.TEXT:
                return self._find_opening(parts)
            case _State.BEGINNING:
                return self._find_beginning(parts)
            case _State.OBJECT:
                return self._find_end(parts)
            case _State.CLOSING:
                return self._find_closing(is_end=is_end)
            case _State.PLAIN:
                parts.append(self._held)
        self._held = ""
        return False

    def _find_opening(self, parts: list[Part]) -> bool:
        """Lets text leave up to an opening, or to what may become one; blanks before a call are none of the text."""
        opening = self._form.opening
        place = self._held.find(opening)
        if place >= 0:
            num_sure = len(self._held[:place].rstrip())
            parts.append(self._held[:num_sure])
            self._held = self._held[num_sure:]
            self._begin(place - num_sure, place - num_sure + len(opening))
            return True
        num_sure = len(self._held) - _num_begun(self._held, opening)
        num_sure = len(self._held[:num_sure].rstrip())
        parts.append(self._held[:num_sure])
        self._held = self._held[num_sure:]
        return False

    def _find_beginning(self, parts: list[Part]) -> bool:
        rest = self._held.lstrip(self._blanks if self._num_calls else None)
        if not rest:
            return False
        if rest.startswith("{"):
            place = len(self._held) - len(rest)
            self._begin(place, place)
        else:
            self._state = _State.PLAIN
        return True

    def _begin(self, start: int, place: int) -> None:
        """A call may begin at `start`; its JSON is looked for from `place` on."""
        self._scan = _ObjectScan(start, place)
        self._state = _State.OBJECT

    def _find_end(self, parts: list[Part]) -> bool:
        end = self._scan.find_end(self._held)
        if end is None:
            return False
        call = self._call_in(self._held[self._scan.start_of_object : end]) if end else None
        if call is not None:
            parts.append(call)  # without the blanks before it
            self._held = self._held[end:]
            self._num_calls += 1
            self._state = _State.OVER if self._num_calls == self._most else self._behind_object
        else:
            self._state = self._between_calls if self._form.opening else _State.PLAIN
            end = end or self._scan.start + len(self._form.opening)
            parts.append(self._held[:end])
            self._held = self._held[end:]
        return True

    def _find_closing(self, *, is_end: bool) -> bool:
        """Behind a call: its closing is expected, and not insisted on."""
        closing, rest = self._form.closing, self._held.lstrip()
        if rest.startswith(closing):
            self._held = rest[len(closing) :]
        elif closing.startswith(rest):
            if not is_end:
                return False
            self._held = ""
        self._state = self._between_calls
        return True

    def _call_in(self, text: str) -> Call | None:
        fields = object_in(text)
        name = fields.get("name") if fields is not None else None
        if fields is None or not isinstance(name, str) or name not in self._names:
            return None
        arguments = fields.get(self._form.arguments_key, {})
        if isinstance(arguments, str):  # some models write them as the API does
            arguments = object_in(arguments)
        return Call(name, written(arguments)) if isinstance(arguments, dict) else None


class _ObjectScan:
    """Where a JSON object ends, looked for once in every character. Whether it is right JSON is asked elsewhere."""

    def __init__(self, start: int = 0, place: int = 0) -> None:
        self.start = start
        self.start_of_object = -1
        self._place = place
        self._depth = 0
        self._is_in_string = False

    def find_end(self, text: str) -> int | None:
        """The place behind the object; 0 when none begins here; None while it is not complete."""
        if self.start_of_object < 0:
            blanks = _BLANKS.match(text, self._place)
            assert blanks is not None
            if blanks.end() == len(text):
                return None
            if text[blanks.end()] != "{":
                return 0
            self.start_of_object = self._place = blanks.end()
        return self._go_on(text)

    def _go_on(self, text: str) -> int | None:
        while found := (_IN_STRING if self._is_in_string else _OUTSIDE).search(text, self._place):
            mark, self._place = found.group(), found.end()
            if mark == "\\":
                if self._place == len(text):
                    self._place -= 1  # what it escapes is still to come
                    return None
                self._place += 1
            elif mark == '"':
                self._is_in_string = not self._is_in_string
            else:
                self._depth += 1 if mark in "{[" else -1
                if not self._depth:
                    return self._place
        self._place = len(text)
        return None


def _num_begun(text: str, opening: str) -> int:
    """Characters at the end of `text` that may be the beginning of an opening."""
    longest = min(len(opening) - 1, len(text))
    return next((num for num in range(longest, 0, -1) if opening.startswith(text[-num:])), 0)


def _joined(parts: list[Part]) -> list[Part]:
    """Neighbouring texts as one, without empty ones."""
    joined: list[Part] = []
    for part in parts:
        if isinstance(part, str) and joined and isinstance(joined[-1], str):
            joined[-1] += part
        elif part:
            joined.append(part)
    return joined
