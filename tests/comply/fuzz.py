"""Runs schemathesis over our own OpenAPI document, against a live site.

Knows its command line. Which checks are left out, and why, stands here once and in docs/compliance.md.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.livesite import PROJECT

HERE = Path(__file__).resolve().parent
SEED = 1
# name: why it says nothing here.
EXCLUDED_CHECKS = {
    "negative_data_rejection": "unknown fields are ignored and null equals not given, by design: what schemathesis "
    "takes for wrong may be right",
    "use_after_free": "belongs to the stateful phase, whose links our document does not have",
    "ensure_resource_availability": "belongs to the stateful phase, too",
}

EXCLUDED = ",".join(EXCLUDED_CHECKS)
# Not of the API: what they answer sets cookies, which would take the place of the session's.
PAGES = "^/api/(docs|openapi.json)$"

# Of /api alone: a body may be right by itself and yet name what is not there, was used before or excludes each other,
# which is told with a 400, 409 or 422.
ROWS = "positive_data_acceptance"
# What a session alone may do; the rest of /api is asked with a key that may do all.
DOORS = {
    "v1": ("--include-path-regex", "^/v1/", "--exclude-checks", EXCLUDED),
    "api": (
        "--include-path-regex",
        "^/api/(?!keys|me|exports|usage/all)",
        "--exclude-checks",
        f"{EXCLUDED},{ROWS}",
    ),
    # To erase oneself takes the password, which no generator has: a 403 each time, and not a lost session.
    "session": (
        "--include-path-regex",
        "^/api/(keys|me|exports|usage/all)",
        "--exclude-checks",
        f"{EXCLUDED},{ROWS}",
        "--exclude-path",
        "/api/me/erase",
    ),
}


@dataclass(frozen=True, slots=True)
class Fuzzed:
    """How a run ended. `output` is what schemathesis said."""

    status: int
    output: str


def fuzz(
    document: dict[str, object],
    url: str,
    headers: Mapping[str, str],
    models: tuple[str, str],
    arguments: Sequence[str],
    folder: Path,
) -> Fuzzed:
    """Every selected operation of `document`, with `arguments` of `schemathesis run`."""
    described = folder / "openapi.json"
    described.write_text(json.dumps(document))
    given = [part for name, value in headers.items() for part in ("--header", f"{name}: {value}")]
    argv = [
        Path(sys.executable).parent / "schemathesis", "--config-file", HERE / "schemathesis.toml",
        "run", described, "--url", url, "--seed", str(SEED), "--suppress-health-check", "all",
        "--continue-on-failure", "--no-color",
        "--exclude-path-regex", PAGES, *given, *arguments,
    ]  # fmt: skip
    environ = os.environ | {
        "SCHEMATHESIS_HOOKS": "tests.comply.fuzz_hooks",
        "PYTHONPATH": str(PROJECT),
        "COMPLY_MODELS": " ".join(models),
    }
    done = subprocess.run(
        [str(part) for part in argv], env=environ, cwd=folder, capture_output=True, text=True, check=False
    )
    return Fuzzed(done.returncode, done.stdout + done.stderr)
