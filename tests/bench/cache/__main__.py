"""`python -m tests.bench.cache [--quick] [--sizes N ...]`: measure the cache on a PostgreSQL and beside an engine of
its own, print the figures, and write the table of docs/semcache/benchmarks.md.

Knows the order of things. A quick run shows that everything works with a scripted engine; its numbers mean little.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from types import FrameType

import django
from django.core.management import call_command

from tests.bench import host
from tests.bench.cache import engine
from tests.bench.cache.results import Results
from tests.plugins.servers import Servers

DOCS = Path(__file__).resolve().parents[3] / "docs" / "semcache"
SIZES = (1000, 10_000, 100_000)
QUICK_SIZES = (400,)
GROWTH_SIZE = 10_000
# What is not begun by then is left out; what hangs for so much longer is ended.
LIMIT_S = 1200
GRACE_S = 120


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    _end_in_order(options.limit_s + GRACE_S)
    machine = _machine()
    print(machine + ("\n" if host.is_quiet() else "\nWARNING: this machine is not quiet\n"), flush=True)
    results = Results(machine, options.json)
    with (
        _site() as folder,
        asyncio.Runner() as runner,
        engine.running(folder, runner, is_scripted=options.quick, verifier=options.verifier) as lane,
    ):
        _measure(options, lane, runner, results)
    return 0


def _measure(
    options: argparse.Namespace, lane: engine.Engine, runner: asyncio.Runner, results: Results
) -> None:
    """Size by size, written after each."""
    from tests.bench.cache.measure import Measurement

    if not runner.run(lane.client.info()).verifier:
        results.miss("verified look-ups, because no verifier is loaded (ENGINE_VERIFY_MODEL or --verifier)")
    ends_at = time.monotonic() + options.limit_s
    for size, larger in zip_longest(options.sizes, options.sizes[1:]):
        of_size = Measurement(size, options.lookups, lane, runner)
        for figure in of_size.figures(with_growth=options.quick or size == GROWTH_SIZE):
            results.add(figure)
            if time.monotonic() > ends_at:
                results.miss(f"what follows {figure.what!r} at {size:,} entries, because time was up")
                results.write()
                return
        ahead = f"{larger:,} entries and what follows, because the run was stopped" if larger else ""
        results.write(ahead=ahead)


@contextmanager
def _site() -> Iterator[Path]:
    """Servers that end with the run, and the site's tables in them; the folder is the run's."""
    with tempfile.TemporaryDirectory(prefix="rill-bench-") as name:
        folder = Path(name)
        servers = Servers(folder)
        try:
            os.environ |= {**servers.addresses(), "DJANGO_SETTINGS_MODULE": "chatsite.settings"}
            django.setup()
            call_command("migrate", verbosity=0)
            yield folder
        finally:
            from django.db import connections

            connections.close_all()
            servers.stop()


def _end_in_order(limit_s: float) -> None:
    """Servers and engine end with this process, also when it is told to end or hangs."""

    def end(number: int, frame: FrameType | None) -> None:
        sys.exit(f"ended by {signal.Signals(number).name}")

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGALRM, end)
    signal.alarm(int(limit_s))


def _machine() -> str:
    parts = [host.processor(), f"load before {os.getloadavg()[0]:.1f}"]
    return ", ".join([*parts, f"commit {commit}"] if (commit := host.commit()) else parts)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.cache", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="one small size, few look-ups, a scripted engine"
    )
    parser.add_argument("--sizes", type=int, nargs="+", metavar="N", help=f"rows (default {SIZES})")
    parser.add_argument("--verifier", default="", metavar="FOLDER", help="instead of ENGINE_VERIFY_MODEL")
    parser.add_argument(
        "--limit-s", type=int, default=LIMIT_S, help=f"begin nothing later (default {LIMIT_S})"
    )
    parser.add_argument(
        "--json",
        type=Path,
        help="figures to write (default: the docs' own); the page of that name gets their table",
    )
    options = parser.parse_args(arguments)
    if options.json is None and not (options.quick or options.sizes):
        options.json = DOCS / "benchmarks.json"
    options.sizes = options.sizes or (QUICK_SIZES if options.quick else SIZES)
    options.lookups = 20 if options.quick else 300
    return options


if __name__ == "__main__":
    sys.exit(main())
