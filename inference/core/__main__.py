"""The core process: `python -m inference.core --fd N --model-folder DIR [--embed-folder DIR] [--verify-folder DIR]
[--salt-id ID]`.

Started by the front, which owns the other end of the socket N. Knows the process: threads, spin settings, dying with
the front, exit codes. Everything about models and steps lies in `startup` and `loop`. Nothing that
imports torch may be imported before the environment is set: OpenMP reads it once, when it is loaded.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import logging
import os
import signal
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from inference import settings
from inference.config import EngineConfig

if TYPE_CHECKING:
    from inference.core.pipe import FrontPipe
    from inference.core.startup import Core

EXIT_CONFIGURATION = 78  # EX_CONFIG: starting again does not help
PR_SET_PDEATHSIG = 1
START_OPTIONS = ("model_folder", "embed_folder", "verify_folder", "salt_id")
# Measured with two busy neighbours on two cores: spinning briefly is best for whoever has the higher priority,
# and ruinous for everybody else.
SPIN_COUNT = "10000"

log = logging.getLogger("inference.core")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m inference.core", description="The device side of the engine."
    )
    parser.add_argument("--fd", type=int, required=True, help="connected stream socket to the front")
    parser.add_argument("--model-folder", type=Path, required=True)
    parser.add_argument("--embed-folder", type=Path, default=None)
    parser.add_argument("--verify-folder", type=Path, default=None)
    parser.add_argument("--salt-id", default="", help="tells the key of the salts from others")
    logging.basicConfig(level=logging.INFO, format="core: %(levelname)s %(message)s")
    try:
        settings.add_flags(parser, EngineConfig)
        options = vars(parser.parse_args(arguments))
        fd = options.pop("fd")
        start = {name: options.pop(name) for name in START_OPTIONS}
        config = settings.read(EngineConfig, **options)
    except settings.SettingError as error:
        return _fail(str(error))
    die_with_parent()
    os.environ.update(openmp_environment(config))
    # Ctrl-C goes to the whole terminal group; the front decides when the core ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return _serve(config, socket.socket(fileno=fd), start)


def openmp_environment(config: EngineConfig) -> dict[str, str]:
    """Threads, and how long an idle one spins: only a core that outranks its neighbours may spin."""
    threads = {"OMP_NUM_THREADS": str(config.threads)} if config.threads else {}
    own = os.getpriority(os.PRIO_PROCESS, 0)
    outranks = config.front_nice > 0 or own < os.getpriority(os.PRIO_PROCESS, os.getppid())
    waiting = {"GOMP_SPINCOUNT": SPIN_COUNT} if outranks else {"OMP_WAIT_POLICY": "PASSIVE"}
    return threads | {name: value for name, value in waiting.items() if name not in os.environ}


def die_with_parent() -> None:
    """The kernel ends this process when the front ends, however it ends (Linux; elsewhere the closed pipe does)."""
    if sys.platform != "linux":
        return
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def spare_the_collector() -> None:
    """What a start made stays, 350,000 objects or so. Looking at them again stopped every stream for 180 ms."""
    gc.collect()
    gc.freeze()


def _serve(config: EngineConfig, connection: socket.socket, start: dict[str, Any]) -> int:
    """`start` holds the options of `start_core`."""
    import torch

    from inference.core.messages import LoadProgress
    from inference.core.pipe import FrontPipe, PipeClosed
    from inference.core.startup import start_core
    from inference.models.errors import ModelError

    torch.set_num_threads(config.threads or len(os.sched_getaffinity(0)))
    pipe = FrontPipe(connection)
    try:
        core = start_core(config, say=lambda text: pipe.send(LoadProgress(text)), **start)
        try:
            spare_the_collector()
            pipe.send(core.ready)
            _run(core, pipe)
        finally:
            core.loop.close()
    except ModelError as error:
        return _fail(str(error))
    except PipeClosed as reason:
        log.info("ending: %s", reason)
        return 0


def _run(core: Core, pipe: FrontPipe) -> NoReturn:
    """Turn the loop until the pipe closes. Busy: take what has arrived. Idle: block until something does."""
    loop = core.loop
    while True:
        rest_s = loop.rest_s()
        if rest_s is None:
            loop.check_blocks()
        for pack in loop.step(pipe.receive(timeout_s=rest_s)):
            pipe.send(pack)


def _fail(line: str) -> int:
    print(f"core: {line}", file=sys.stderr, flush=True)
    return EXIT_CONFIGURATION


if __name__ == "__main__":
    sys.exit(main())
