"""`python -m tests.bench.cache [--quick] [--sizes N ...] [--json FILE]`: measure the cache on a PostgreSQL of its own.

Knows the order of things. A quick run shows that everything works; its numbers mean little.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import django
from django.core.management import call_command

from tests.plugins.servers import Servers

if TYPE_CHECKING:
    from tests.bench.cache.measure import Figure

SIZES = (1000, 10_000, 100_000)
QUICK_SIZES = (200,)
GROWTH_SIZE = 10_000


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    with _site():
        from tests.bench.cache.measure import measure

        _say_load()
        figures = []
        for size in options.sizes:
            with_growth = options.quick or size == GROWTH_SIZE
            for figure in measure(size, options.lookups, with_growth=with_growth):
                print(line(figure), flush=True)
                figures.append(figure)
    if options.json:
        options.json.write_text(as_json(figures))
    return 0


def line(figure: Figure) -> str:
    times = ""
    if figure.times_ms:
        times = f"p50 {figure.quantile(0.5):7.2f} ms   p95 {figure.quantile(0.95):7.2f} ms"
    facts = "   ".join(f"{name} {value:.1f}" for name, value in figure.facts.items())
    return f"{figure.rows:>8}  {figure.what:<32} {times:<34}{facts}".rstrip()


def as_json(figures: Sequence[Figure]) -> str:
    rows = [
        {
            "rows": figure.rows,
            "what": figure.what,
            "p50_ms": round(figure.quantile(0.5), 3) if figure.times_ms else None,
            "p95_ms": round(figure.quantile(0.95), 3) if figure.times_ms else None,
            "count": len(figure.times_ms),
            **{name: round(value, 3) for name, value in figure.facts.items()},
        }
        for figure in figures
    ]
    return json.dumps(rows, indent=1) + "\n"


@contextmanager
def _site() -> Iterator[None]:
    """Servers that end with the run, and the site's tables in them."""
    with tempfile.TemporaryDirectory(prefix="rill-bench-") as folder:
        servers = Servers(Path(folder))
        try:
            os.environ |= {**servers.addresses(), "DJANGO_SETTINGS_MODULE": "chatsite.settings"}
            django.setup()
            call_command("migrate", verbosity=0)
            yield
        finally:
            from django.db import connections

            connections.close_all()
            servers.stop()


def _say_load() -> None:
    print(
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; vectors of 384 numbers, no model's time\n",
        flush=True,
    )


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.cache", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one small size, few look-ups")
    parser.add_argument("--sizes", type=int, nargs="+", metavar="N", help=f"rows (default {SIZES})")
    parser.add_argument("--json", type=Path, help="file to write the figures to")
    options = parser.parse_args(arguments)
    options.sizes = options.sizes or (QUICK_SIZES if options.quick else SIZES)
    options.lookups = 20 if options.quick else 500
    return options


if __name__ == "__main__":
    sys.exit(main())
