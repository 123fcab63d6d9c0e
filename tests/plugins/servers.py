"""Throwaway PostgreSQL and Redis-protocol servers for a test run, started before Django's settings are read.

They come from the same wheels as the product's and end with the run, also when it is killed (their input closes).
`TEST_DATABASE_URL` and `TEST_REDIS_URL` name real servers instead.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterable
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S

PROJECT = Path(__file__).resolve().parents[2]
SETTING_PREFIXES = ("CHAT_", "SEMCACHE_", "ENGINE_")
# Tests in these folders never touch Django; a run of them alone needs no server.
WITHOUT_SERVERS = ("tests/inference", "tests/launcher")


class Servers:
    """The servers of one test run, owned by a `services` launcher in a temporary folder."""

    def __init__(self, folder: Path) -> None:
        given = {name: os.environ.get(f"TEST_{name}", "") for name in ("DATABASE_URL", "REDIS_URL")}
        self._log = folder / "servers.log"
        with self._log.open("wb") as log:
            self._launcher = subprocess.Popen(
                [sys.executable, "-m", "chatsite.launcher", "services", "--throwaway"],
                cwd=PROJECT,
                env=os.environ | given | {"DATA_DIR": str(folder / "data")},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        self._given = {name: url for name, url in given.items() if url}

    def addresses(self) -> dict[str, str]:
        """Wait until the servers are ready; the variables by which Django finds them."""
        assert self._launcher.stdout is not None
        line = self._launcher.stdout.readline()
        if not line:
            raise pytest.UsageError(f"the test servers did not start:\n{self._log.read_text()}")
        return self._given | json.loads(line)

    def stop(self) -> None:
        self._launcher.communicate(timeout=PATIENCE_S)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser, args: list[str]
) -> Generator[None]:
    _isolate_settings()
    if needs_servers(args):
        folder = tempfile.TemporaryDirectory(prefix="rill-test-")
        servers = Servers(Path(folder.name))
        early_config.add_cleanup(folder.cleanup)
        early_config.add_cleanup(servers.stop)
        os.environ.update(servers.addresses())
    yield


def needs_servers(args: Iterable[str]) -> bool:
    """False only where every path on the command line lies in a folder whose tests never touch Django."""
    targets = [arg.split("::")[0] for arg in args if not arg.startswith("-")]
    paths = [os.path.relpath(target, PROJECT) for target in targets if Path(target).exists()]
    return not paths or not all(path.startswith(WITHOUT_SERVERS) for path in paths)


def _isolate_settings() -> None:
    """What the developer's shell sets for a running site must not change what the tests see."""
    for name in [name for name in os.environ if name.startswith(SETTING_PREFIXES)]:
        del os.environ[name]
    os.environ["SECRET_KEY"] = "only-for-tests-" + "x" * 50
    os.environ["ENGINE_ADDRESS"] = "unix:/nonexistent/engine.sock"
