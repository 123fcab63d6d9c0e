"""A core that runs, with our end of its pipe.

Knows sockets and how a core is told of its end. Does not know what is said on the pipe (`core_process`).
"""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from inference.front.spawner import Spawner


@dataclass(frozen=True, slots=True)
class CoreCommand:
    """How to start the core; `--fd N` is added. `environ` is added to ours."""

    argv: Sequence[str]
    environ: dict[str, str]


@dataclass(frozen=True, slots=True)
class Launched:
    """A core that closes its end, and ends, when ours is closed."""

    process: subprocess.Popen[bytes]
    pipe: socket.socket

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self.pipe.close()


def launch(command: CoreCommand, spawner: Spawner) -> Future[Launched]:
    """Begins to start a core; what the future gives belongs to whoever asks it. It raises OSError."""
    ours, theirs = socket.socketpair()

    def start() -> Launched:
        try:
            argv = [*command.argv, "--fd", str(theirs.fileno())]
            return Launched(spawner.spawn(argv, command.environ, theirs.fileno()), ours)
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()

    return spawner.submit(start)
