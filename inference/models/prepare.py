"""Makes the two model folders and the compiled kernels ready before anything is started: `python -m
inference.models.prepare`.

Knows the settings MODEL, EMBED_MODEL and DATA_DIR, progress lines and exit codes. Ends at once when all is done.
"""

from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from inference import settings
from inference.config import EngineConfig
from inference.models import store
from inference.models.errors import ModelError, ModelNotUsable
from inference.models.fused.native import build
from inference.models.resolve import Say, resolve


def main(arguments: list[str] | None = None) -> int:
    """Prints one line for each long step and each finished folder; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m inference.models.prepare", description=main.__doc__)
    parser.add_argument(
        "--verify", action="store_true", help="read every byte of the folders and compare checksums"
    )
    options = parser.parse_args(arguments)
    try:
        _prepare(settings.read(EngineConfig), verifies=options.verify)
    except settings.SettingError as error:
        return _fail(str(error), ModelNotUsable.exit_code)
    except ModelError as error:
        return _fail(str(error), error.exit_code)
    except OSError as error:  # a full disk, a folder that may not be written
        return _fail(f"{error.filename or 'disk'}: {error.strerror or error}", ModelNotUsable.exit_code)
    return 0


def _prepare(config: EngineConfig, verifies: bool) -> None:
    start = time.monotonic()

    def say(line: str) -> None:
        print(f"models [{time.monotonic() - start:5.1f} s] {line}", flush=True)

    with ThreadPoolExecutor(1) as beside:  # the compiler needs a core, the models mostly wait for the line
        compiling = [] if config.kernels == "torch" else [beside.submit(_compile, config.data_dir, say)]
        for variable, spec in (("MODEL", config.model), ("EMBED_MODEL", config.embed_model)):
            folder = _resolved(variable, spec, config.data_dir, say)
            if verifies:
                say(f"verifying {folder}")
                store.verify(folder)
            say(f"{variable} is ready in {folder}")
        for one in compiling:
            one.result()


def _compile(data_dir: str, say: Say) -> None:
    if (library := build.built(data_dir, say)) is not None:
        say(f"kernels are ready in {library.parent}")


def _resolved(variable: str, spec: str, data_dir: str, say: Say) -> Path:
    try:
        return resolve(spec, data_dir, say)
    except ModelError as error:
        raise type(error)(f"{variable}={spec}: {error}") from error


def _fail(line: str, exit_code: int) -> int:
    print(f"models: {line}", file=sys.stderr, flush=True)
    return exit_code


if __name__ == "__main__":
    sys.exit(main())
