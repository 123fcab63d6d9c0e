"""Runs schemathesis over operations of our own OpenAPI document, against a live site.

Knows its command line, and which way in each operation takes. What is expected stands in schemathesis.toml.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.livesite import PROJECT

HERE = Path(__file__).resolve().parent
SEED = 1
# Of the stateful phase, whose links our document does not have.
EXCLUDED = "use_after_free,ensure_resource_availability"


@dataclass(frozen=True, slots=True)
class Fuzzed:
    """How a run ended. `output` is what schemathesis said, `statuses` what the site answered, how often."""

    status: int
    output: str
    statuses: Counter[int]

    @property
    def was_anything_done(self) -> bool:
        """Else nothing was asked in truth, however well it was refused."""
        return any(200 <= status < 300 for status in self.statuses)


def door(document: Mapping[str, Any], operation: str) -> str:
    """By what the requests of an operation are let in: a key of `v1`, a key that may do all (`api`), or a session."""
    method, path = operation.split()
    ways = document["paths"][path][method.lower()]["security"]
    if path.startswith("/v1/"):
        return "v1"
    return "api" if any("key" in way for way in ways) else "session"


def fuzz(
    document: Mapping[str, Any],
    operations: Sequence[str],
    url: str,
    headers: Mapping[str, str],
    arguments: Sequence[str],
    folder: Path,
) -> Fuzzed:
    """Those `operations` of `document`, with `arguments` of `schemathesis run`."""
    described = folder / "openapi.json"
    described.write_text(json.dumps(document))
    given = [part for name, value in headers.items() for part in ("--header", f"{name}: {value}")]
    chosen = [part for operation in operations for part in ("--include-name", operation)]
    argv = [
        Path(sys.executable).parent / "schemathesis", "--config-file", HERE / "schemathesis.toml",
        "run", described, "--url", url, "--seed", SEED, "--suppress-health-check", "all", "--continue-on-failure",
        "--no-color", "--exclude-checks", EXCLUDED, *chosen, *given, *arguments,
    ]  # fmt: skip
    statuses = folder / "statuses"
    statuses.touch()
    environ = os.environ | {
        "SCHEMATHESIS_HOOKS": "tests.comply.fuzz_hooks",
        "PYTHONPATH": str(PROJECT),
        "PYTHONHASHSEED": str(SEED),  # sets of generated texts have the same order each time
        "FUZZ_STATUSES": str(statuses),
    }
    done = subprocess.run(
        [str(part) for part in argv], env=environ, cwd=folder, capture_output=True, text=True, check=False
    )
    answered = Counter(map(int, statuses.read_text().split()))
    return Fuzzed(done.returncode, done.stdout + done.stderr, answered)
