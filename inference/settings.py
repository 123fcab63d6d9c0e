"""Typed settings read once from the environment.

Knows how a frozen dataclass describes settings (default, range, help) and how to read, check and document it.
Knows nothing about any particular setting: those live in `inference.config` and `chatsite.env`.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar, get_type_hints

T = TypeVar("T")

TRUE_WORDS = {"1", "true", "yes", "on"}
FALSE_WORDS = {"0", "false", "no", "off"}


class SettingError(ValueError):
    """A setting has a value that cannot be used; the message names the variable, the value and what is allowed."""


@dataclass(frozen=True, slots=True)
class SettingInfo:
    """One documented setting: the environment variable, its type, default, allowed range and meaning."""

    env: str
    kind: str
    default: Any
    help: str
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    is_secret: bool = False

    @property
    def allowed(self) -> str:
        if self.choices:
            return " | ".join(self.choices)
        if self.minimum is None and self.maximum is None:
            return ""
        low = "" if self.minimum is None else f"{self.minimum:g}"
        high = "" if self.maximum is None else f"{self.maximum:g}"
        return f"{low} … {high}".strip()


def setting(
    env: str,
    default: Any,
    help: str,
    *,
    between: tuple[float | None, float | None] = (None, None),
    choices: tuple[str, ...] = (),
    is_secret: bool = False,
) -> Any:
    """Declare a dataclass field that is read from the environment variable `env`."""
    metadata = {"env": env, "help": help, "between": between, "choices": choices, "is_secret": is_secret}
    return dataclasses.field(default=default, metadata=metadata)


def describe(cls: type) -> Iterator[SettingInfo]:
    """Every setting of `cls` in order of declaration, for documentation and command-line flags."""
    hints = get_type_hints(cls)
    for field in dataclasses.fields(cls):
        meta = field.metadata
        low, high = meta["between"]
        yield SettingInfo(
            env=meta["env"],
            kind=hints[field.name].__name__,
            default=field.default,
            help=meta["help"],
            minimum=low,
            maximum=high,
            choices=meta["choices"],
            is_secret=meta["is_secret"],
        )


def read(cls: type[T], environ: Mapping[str, str] | None = None, **overrides: Any) -> T:
    """An instance of `cls` from the environment; `overrides` (field name -> value) win over it.

    Raises SettingError for the first value that is not of the field's type or outside its range.
    """
    environ = os.environ if environ is None else environ
    values: dict[str, Any] = {}
    for field, info in zip(dataclasses.fields(cls), describe(cls), strict=True):  # type: ignore[arg-type]
        if overrides.get(field.name) is not None:
            values[field.name] = _checked(info, overrides[field.name])
        elif environ.get(info.env, "") != "":
            values[field.name] = _checked(info, _parsed(info, environ[info.env]))
    return cls(**values)


def to_environ(config: Any, *secrets: str) -> dict[str, str]:
    """The variables that make `read` give the same again in another process. Secrets only by their field's name."""
    fields = zip(dataclasses.fields(config), describe(type(config)), strict=True)
    return {
        info.env: str(getattr(config, field.name))
        for field, info in fields
        if not info.is_secret or field.name in secrets
    }


def secrets_in(config: Any) -> list[str]:
    """The values of the settings that nobody may see."""
    fields = zip(dataclasses.fields(config), describe(type(config)), strict=True)
    return [value for field, info in fields if info.is_secret and (value := getattr(config, field.name))]


def add_flags(parser: argparse.ArgumentParser, cls: type) -> None:
    """One `--field-name` flag per setting of `cls`; unset flags stay None, so `read(cls, **vars(args))` works."""
    for field, info in zip(dataclasses.fields(cls), describe(cls), strict=True):
        flag = "--" + field.name.replace("_", "-")
        shown = "" if info.is_secret else f" (default {info.default!r}, environment {info.env})"
        parser.add_argument(
            flag,
            dest=field.name,
            default=None,
            metavar=info.kind.upper(),
            type=partial(_parsed, info),
            help=info.help.replace("%", "%%") + shown,
        )


def _parsed(info: SettingInfo, raw: str) -> Any:
    try:
        if info.kind == "bool":
            return _parsed_bool(raw)
        if info.kind in ("int", "float"):
            return int(raw) if info.kind == "int" else float(raw)
        return raw
    except ValueError:
        raise _wrong_type(info, raw) from None


def _parsed_bool(raw: str) -> bool:
    word = raw.strip().lower()
    if word not in TRUE_WORDS | FALSE_WORDS:
        raise ValueError(raw)
    return word in TRUE_WORDS


def _wrong_type(info: SettingInfo, value: Any) -> SettingError:
    shown = "(hidden)" if info.is_secret else repr(value)
    return SettingError(f"{info.env}={shown} is not a valid {info.kind}")


def _checked(info: SettingInfo, value: Any) -> Any:
    kinds = {"float", "int"} if info.kind == "float" else {info.kind}
    if type(value).__name__ not in kinds:
        raise _wrong_type(info, value)
    too_low = info.minimum is not None and not value >= info.minimum  # "not": a NaN is on no side
    too_high = info.maximum is not None and not value <= info.maximum
    if too_low or too_high or (info.choices and value not in info.choices):
        raise SettingError(f"{info.env}={value!r} is not allowed: expected {info.allowed}")
    return value
