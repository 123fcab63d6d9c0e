"""How a log line is written: one line a record, without secrets, without people's words, without control characters.

Secrets are known by their form, and those of the settings by their value. What an exception says is written only where
its class is known to speak of machines: a database's error quotes the values of the statement that failed. Tracebacks
name files and lines, and are indented, so that nothing in them can pass for a record. Knows no logger.
"""

from __future__ import annotations

import logging
import re
import sys
import threading
import traceback
from collections.abc import Collection, Iterator
from types import TracebackType
from typing import Any

HIDDEN = "[hidden]"
SHORTEST_SECRET = 6

# In order. The first group, where there is one, stays.
FORMS = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        r"(rill_[\w-]{8})[\w-]+",  # the prefix is how people tell their keys apart
        r"(\b(?:bearer|basic)\s+)[^\s,'\"]+",
        r"(\b\w+://)[^\s/@'\"]+@",
        r"((?:sessionid|csrftoken|csrfmiddlewaretoken|oidc)['\"]?\s*[=:]\s*['\"]?)[^\s;,&'\"]+",
        r"(\b\w*(?:password|passwd|secret|token(?!s)|verifier|api_?key)\w*['\"]?\s*[=:]\s*['\"]?)[^\s;,&'\"]+",
        r"([?&](?:code|state|nonce|key)=)[^\s;,&'\"]+",
        r"\beyJ[\w-]+\.[\w-]*\.[\w-]*",
        r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+",
    )
)
# Of a task that nobody waited for, asyncio itself writes out the exception.
REPR_OF_ERROR = re.compile(r"(exception=\w+)\(.*\)", re.DOTALL)
# What these say is about sockets, files and servers; only the first line of it.
PLAIN_SPOKEN = ("OSError", "OperationalError", "RedisError", "SiteError", "EngineError", "ProviderFailed")
CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


class SafeFormatter(logging.Formatter):
    """`secrets` are values that must not be written in whatever form; `shows_all` is for a developer's own machine."""

    def __init__(self, secrets: Collection[str] = (), *, shows_all: bool = False) -> None:
        super().__init__()
        self._secrets = sorted((s for s in secrets if len(s) >= SHORTEST_SECRET), key=len, reverse=True)
        self._shows_all = shows_all

    def format(self, record: logging.LogRecord) -> str:
        line = f"{record.levelname} {record.name}: {self._told(self._message(record))}"
        if record.exc_info and record.exc_info[1] is not None:
            line += "".join(f"\n    {self._told(part)}" for part in self._traceback(record.exc_info[1]))
        if record.stack_info:
            line += "".join(f"\n    {self._told(part)}" for part in record.stack_info.splitlines())
        return line

    def _message(self, record: logging.LogRecord) -> str:
        given, args = record.msg, record.args
        if not self._shows_all:
            given = described(given) if isinstance(given, BaseException) else given
            if isinstance(args, tuple):
                args = tuple(described(arg) if isinstance(arg, BaseException) else arg for arg in args)
        try:
            message = str(given) % args if args else str(given)
        except (TypeError, ValueError, KeyError):  # logging would write out all of it, past this formatter
            message = f"{given} (its arguments do not fit)"
        return message if self._shows_all else REPR_OF_ERROR.sub(rf"\1({HIDDEN})", message)

    def _traceback(self, error: BaseException) -> Iterator[str]:
        yield "Traceback:"
        for link in chain_of(error):
            for frame in traceback.extract_tb(link.__traceback__):
                yield f"{frame.filename}:{frame.lineno} in {frame.name}"
            yield repr(link) if self._shows_all else described(link)

    def _told(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        for form in FORMS:
            text = form.sub(rf"\g<1>{HIDDEN}" if form.groups else HIDDEN, text)
        return CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def described(error: BaseException) -> str:
    """The class of `error`, and its words where they are known to be harmless."""
    name = type(error).__name__
    is_plain = any(base.__name__ in PLAIN_SPOKEN for base in type(error).__mro__)
    words = str(error).strip().partition("\n")[0] if is_plain else ""
    return f"{name}: {words}" if words else name


def chain_of(error: BaseException) -> list[BaseException]:
    """`error` with what led to it and what it is made of, in the order in which they happened."""
    found: list[BaseException] = []

    def walk(one: BaseException | None) -> None:
        if one is None or one in found:
            return
        found.append(one)
        walk(one.__cause__ or (None if one.__suppress_context__ else one.__context__))
        for part in getattr(one, "exceptions", ()):
            walk(part)

    walk(error)
    return found[::-1]


def catch_the_rest() -> None:
    """What would be written past all loggers, exceptions that nothing caught, is logged instead."""
    logger = logging.getLogger("chatsite.uncaught")

    def on_main(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if issubclass(kind, KeyboardInterrupt):
            sys.__excepthook__(kind, error, trace)
        else:
            logger.critical("the process ends", exc_info=(kind, error, trace))

    def on_thread(given: threading.ExceptHookArgs) -> None:
        if given.exc_value is not None:
            logger.error("a thread ended", exc_info=given.exc_value)

    def on_nobody(given: Any) -> None:
        logger.error("nobody could be told of an exception", exc_info=given.exc_value)

    sys.excepthook, threading.excepthook, sys.unraisablehook = on_main, on_thread, on_nobody
