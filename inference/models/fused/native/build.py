"""Compiles the operations into DATA_DIR, where the engine finds them: `built` at set-up, `found` at start.

A library is named after its sources, torch's version and the processor's capability, so that one data folder serves
machines of several kinds and nothing that does not fit is ever loaded. Does not import torch; knows nothing of what
the operations compute. The command is a plain one: torch's own loader of extensions wants the build tool ninja, and
the package of that name would overwrite a module of django-ninja.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import platform
import shutil
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

from inference.models import store
from inference.models.fused.native.processor import Capability, capability

COMPILER = "g++"
LIBRARY = "kernels.so"
SOURCES = Path(__file__).parent
# Ten times of what it takes on two busy cores.
TIMEOUT_S = 300
# A compiler that cannot leave out a frame's checks of ATen's vectors warns of numbers that no load leaves unset.
_OPTIONS = ("-std=c++20", "-O3", "-fopenmp", "-fPIC", "-shared", "-w", "-DAT_PARALLEL_OPENMP=1")

Say = Callable[[str], None]


class CompileError(Exception):
    """The compiler did not make the library; says why in one line."""


def found(data_dir: str) -> Path | None:
    """The library that was built for this processor, these sources and this torch."""
    path = _folder(data_dir, capability()) / LIBRARY
    return path if path.is_file() else None


def built(data_dir: str, say: Say) -> Path | None:
    """The library, compiled where there is none yet; None, with one line said, where that cannot be."""
    if (path := found(data_dir)) is not None:
        return path
    if shutil.which(COMPILER) is None:
        say(f"small operations in plain torch: there is no {COMPILER} to compile the quicker ones")
        return None
    level = capability()
    folder = _folder(data_dir, level)
    say(f"compiling small operations for {level.name}")
    try:
        store.build(folder, folder.name, partial(_compile, level))
    except CompileError as error:
        say(f"small operations in plain torch: {error}")
        return None
    return folder / LIBRARY


def _folder(data_dir: str, level: Capability) -> Path:
    known = hashlib.sha256()
    parts = [importlib.metadata.version("torch"), platform.machine(), *level.options, *_OPTIONS]
    known.update("\n".join(parts).encode())
    for path in sorted([*SOURCES.glob("*.h"), *SOURCES.glob("*.cpp")]):
        known.update(path.name.encode() + path.read_bytes())
    return Path(data_dir) / "kernels" / f"{level.name.lower()}-{known.hexdigest()[:16]}"


def _compile(level: Capability, folder: Path) -> None:
    torch = importlib.util.find_spec("torch")
    assert torch is not None
    assert torch.origin is not None
    home = Path(torch.origin).parent
    command = [COMPILER, *_OPTIONS, *level.options, f"-I{home / 'include'}"]
    command += [str(path) for path in sorted(SOURCES.glob("*.cpp"))]
    command += ["-o", str(folder / LIBRARY), f"-L{home / 'lib'}", "-ltorch_cpu", "-lc10"]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=TIMEOUT_S)
    except subprocess.CalledProcessError as error:
        lines = [line for line in error.stderr.splitlines() if "error" in line] or [
            f"exit code {error.returncode}"
        ]
        raise CompileError(f"{COMPILER}: {lines[0][:200]}") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CompileError(f"{COMPILER}: {error}") from error
