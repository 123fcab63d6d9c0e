"""Servers as child processes of the bench: started, awaited, weighed and ended. Knows no engine."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2

from tests.livesite import PROJECT

STARTS_WITHIN_S = 300.0
ENDS_WITHIN_S = 30.0
WAIT_S = 0.05
LAST_LINES = 3


class NotStarted(Exception):
    """A server that could not be run here; the text is the reason."""


@dataclass(frozen=True, slots=True)
class Child:
    pid: int
    cold_start_s: float


@contextmanager
def child(
    argv: Sequence[str], log: Path, is_ready: Callable[[], bool], environ: Mapping[str, str] = {}
) -> Iterator[Child]:
    """A server that is ready, until it is no longer needed. Raises NotStarted with the last lines of its log."""
    began_s = time.monotonic()
    with log.open("wb") as output:
        process = subprocess.Popen(
            argv,
            env=os.environ | environ,
            cwd=PROJECT,
            stdout=output,
            stderr=output,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    try:
        while not is_ready():
            waited_s = time.monotonic() - began_s
            if process.poll() is not None or waited_s > STARTS_WITHIN_S:
                raise NotStarted(_last_lines(log) or f"no answer within {waited_s:.0f} s")
            time.sleep(WAIT_S)
        yield Child(process.pid, time.monotonic() - began_s)
    finally:
        process.terminate()
        try:
            process.wait(ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def answers(url: str) -> bool:
    """Whether GET says 200 there."""
    try:
        return httpx2.get(url).status_code == 200
    except httpx2.TransportError:
        return False


def memory_mib(pid: int) -> float:
    """Resident memory of a process and all below it; what several of them share counts once."""
    return sum(_proportional_kib(process) for process in _family(pid)) / 1024


def _family(pid: int) -> list[int]:
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue  # ended meanwhile
    family = [pid]
    for member in family:
        family += [process for process, parent in parents.items() if parent == member]
    return family


def _proportional_kib(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def _last_lines(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return " / ".join(line.strip() for line in lines[-LAST_LINES:])
