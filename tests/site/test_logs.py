"""What the formatter of the root handler lets through: no secret, nobody's words, and one record a line (S23, S31)."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest
from django.db import DataError, OperationalError

from chatsite import logs
from chatsite.logs import SafeFormatter
from inference.errors import EngineError

CANARY = "canary-4711"
KEY = "rill_" + "aB3_-" * 8 + "xyz"
JWT = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJjYW5hcnktNDcxMSJ9.c2lnbmF0dXJl"
TEXTS = (
    "Authorization: Bearer " + CANARY,
    "authorization: basic " + CANARY,
    f"{{'Authorization': 'Bearer {CANARY}'}}",
    f"postgresql://rill:{CANARY}@db.internal:5432/rill",
    f"redis://:{CANARY}@redis/0",
    f"Cookie: x=1; sessionid={CANARY}; theme=dark",
    f"set-cookie: __Host-sessionid={CANARY}; Path=/",
    f"csrftoken={CANARY}",
    f"{{'csrfmiddlewaretoken': '{CANARY}', 'x': 1}}",
    f"password={CANARY}&next=/",
    f'{{"password1": "{CANARY}"}}',
    f"new_password: {CANARY}",
    f"client_secret={CANARY}",
    f"access_token={CANARY}",
    f"Using code_verifier: '{CANARY}'",
    f"api-key: {CANARY}".replace("-key", "_key"),
    f"GET /oidc/callback?code={CANARY}&state=x",
    f"GET /oidc/callback?x=1&state={CANARY}",
    f"{CANARY}@example.org wrote",
)


def record(message: object, *args: object, name: str = "test", **more: object) -> logging.LogRecord:
    return logging.LogRecord(name, logging.ERROR, "file.py", 1, message, args, more.get("error"))  # type: ignore[arg-type]


def written(message: object, *args: object, error: BaseException | None = None, **options: object) -> str:
    given = (type(error), error, error.__traceback__) if error is not None else None
    return SafeFormatter(**options).format(record(message, *args, error=given))  # type: ignore[arg-type]


def test_secrets_are_known_by_their_form() -> None:
    for text in TEXTS:
        assert CANARY not in written(text), text
        assert CANARY not in written("it said %s", text), text
        assert CANARY not in written("it said %r", {"text": text}), text
    assert KEY[13:] not in written(f"refused {KEY}") and KEY[:13] in written(f"refused {KEY}")
    assert JWT.split(".")[1] not in written(f"id token {JWT}")


def test_what_is_no_secret_stays() -> None:
    for text in (
        "prompt_tokens=12, generated_tokens: 7",
        "GET /v1/models 200",
        "Invalid HTTP_HOST header: 'a:1'",
    ):
        assert written(text).endswith(text)


def test_each_form_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any one of them a secret of the texts above is written."""
    texts = [*TEXTS, f"refused {KEY}", f"id token {JWT}"]
    for left_out in logs.FORMS:
        monkeypatch.setattr(logs, "FORMS", tuple(form for form in logs.FORMS if form is not left_out))
        shown = " ".join(written(text) for text in texts)
        assert CANARY in shown or KEY in shown or JWT in shown, left_out.pattern
        monkeypatch.undo()


def test_secrets_of_the_settings_are_known_by_their_value() -> None:
    assert "s3cr3t-of-all" not in written("odd form: <s3cr3t-of-all>", secrets=["s3cr3t-of-all", "x"])
    assert "x" in written("x", secrets=["x"]), "what is too short to be one would blot out everything"


def raised(error: BaseException, cause: BaseException | None = None) -> BaseException:
    try:
        raise error from cause
    except BaseException as caught:
        return caught


SPEAKS = (
    ValueError(CANARY),
    DataError(f"invalid input\nLINE 1: INSERT INTO chat_message VALUES ('{CANARY}')"),
    OperationalError(f"canceling statement\nCONTEXT: {CANARY}"),
    KeyError(CANARY),
    ExceptionGroup("several", [ValueError(CANARY)]),
)


def test_exceptions_do_not_quote_what_people_wrote() -> None:
    for error in SPEAKS:
        for shown in (
            written("it failed", error=raised(error)),
            written("it failed", error=raised(RuntimeError("outer"), error)),
            written("it failed: %s", error),
            written("it failed: %r", error),
            written(error),
        ):
            assert CANARY not in shown and type(error).__name__ in shown, shown
    frames = written("it failed", error=raised(RuntimeError("outer"), raised(ValueError(CANARY))))
    assert "ValueError" in frames and "RuntimeError" in frames and "test_logs.py" in frames
    assert "canceling statement" in written("away: %s", SPEAKS[2])
    assert "engine is away" in written("away: %s", EngineError("engine is away"))
    assert CANARY in written("it failed", error=raised(ValueError(CANARY)), shows_all=True)


def test_asyncio_does_not_quote_what_nobody_waited_for() -> None:
    text = f"Task exception was never retrieved\nfuture: <Task coro=<x()> exception=ValueError('{CANARY} (')>"
    assert CANARY not in written(text) and "exception=ValueError" in written(text)


def test_arguments_that_do_not_fit_are_not_written_out(capfd: pytest.CaptureFixture[str]) -> None:
    assert CANARY not in written("one %s two %s", CANARY)
    assert CANARY not in written("%d", CANARY)
    assert capfd.readouterr().err == ""


CONTROLS = [
    "\r",
    "\n",
    "\x1b[31m",
    "\x00",
    "\x9b",
    "\u2028",
    "\u202e",
    "\x7f",
    "\x08",
    "\r\nCRITICAL root: forged",
]


def test_nothing_passes_for_a_line_or_for_a_command_to_the_terminal() -> None:
    for control in CONTROLS:
        line = written(f"name: a{control}b")
        assert re.fullmatch(r"ERROR test: name: a[\x20-\x7e]+b", line), ascii(line)
        line = written("name: %s", f"a{control}b")
        assert line.isprintable() and "\n" not in line
    trace = written("failed", error=raised(OSError(f"no file{CONTROLS[-1]}")))
    assert all(line.startswith("    ") for line in trace.splitlines()[1:])
    assert written("早上好 ✓ é").endswith("早上好 ✓ é")


def test_what_nothing_caught_is_logged_like_the_rest(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    import sys
    import threading

    for module, name in ((sys, "excepthook"), (threading, "excepthook"), (sys, "unraisablehook")):
        monkeypatch.setattr(module, name, getattr(module, name))
    logs.catch_the_rest()
    error = raised(ValueError(CANARY))
    sys.excepthook(ValueError, error, error.__traceback__)  # type: ignore[arg-type]
    thread = threading.Thread(target=lambda: {}[CANARY])
    thread.start()
    thread.join()
    shown = [SafeFormatter().format(one) for one in caplog.records if one.name == "chatsite.uncaught"]
    assert len(shown) == 2 and CANARY not in "\n".join(shown)


def test_no_message_is_put_together_before_the_formatter_can_look() -> None:
    """An f-string would hide from it which parts are exceptions."""
    root = Path(logs.__file__).parents[1]
    for folder in ("chatsite", "semcache"):
        for path in (root / folder).rglob("*.py"):
            found = re.search(r"logger\.\w+\(\s*f[\"']", path.read_text())
            assert not found, path
