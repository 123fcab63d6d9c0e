"""`python -m tests.bench.claims [--quick] [NAME ...]`: measure claims, print them, and write docs/claims.md.

Knows the order of things. A quick run shows that everything works; its numbers mean little and are not written.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

from inference import settings
from inference.config import EngineConfig
from inference.core.__main__ import openmp_environment

DOCS = Path(__file__).resolve().parents[3] / "docs"


def main(arguments: list[str] | None = None) -> int:
    from inference.models.resolve import resolve
    from tests.bench import host
    from tests.bench.claims import machine, report
    from tests.bench.claims.every import CLAIMS
    from tests.bench.claims.rig import Rig

    config = settings.read(EngineConfig)
    options = _options(arguments, sorted(CLAIMS), config.model)
    folder = resolve(options.model, config.data_dir)
    rig = Rig(folder, options.dtype, 1 if options.quick else options.rounds, options.quick)
    facts = machine.describe(rig.model())
    print(f"{facts}\n" + ("" if host.is_quiet() else "WARNING: this machine is not quiet\n"), flush=True)
    findings = {}
    for name, measure in CLAIMS.items():
        if options.names and name not in options.names:
            continue
        started = time.monotonic()
        findings[name] = measure(rig)
        print(report.show(name, findings[name]) + f"   ({time.monotonic() - started:.0f} s)\n", flush=True)
    if options.docs:
        report.write(findings, facts, options.docs)
    return 0


def _options(arguments: list[str] | None, names: list[str], model: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.claims", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(names)}; none: all")
    parser.add_argument("--quick", action="store_true", help="small sizes, one round, nothing is written")
    parser.add_argument("--rounds", type=int, default=3, help="medians of so many (default 3)")
    parser.add_argument("--model", default=model, help=f"what MODEL may be (default {model})")
    parser.add_argument("--dtype", default="auto", help="auto, fp32, bf16 or fp16 (default auto)")
    parser.add_argument("--docs", type=Path, default=None, help=f"folder to write to (default {DOCS})")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.names) - set(names))
    if unknown:
        parser.error(f"there is no claim {unknown[0]!r}; there are {', '.join(names)}")
    if options.docs is None and not options.quick:
        options.docs = DOCS
    return options


if __name__ == "__main__":
    # As the site starts its core: ahead of everybody else, so that idle threads may spin. Before torch is loaded.
    os.environ.update(openmp_environment(settings.read(EngineConfig, front_nice=1)))
    sys.exit(main())
