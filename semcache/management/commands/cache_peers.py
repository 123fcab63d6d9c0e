"""`manage.py cache_peers`: what other semantic caches serve of the same questions, and how much of it is wrong."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from semcache.evaluation import vectors
from semcache.evaluation.peers import compare
from semcache.evaluation.runs import RUNS


class Command(BaseCommand):
    help = (
        "Asks other semantic caches the questions of cache_eval, with the same vectors. They live in an environment of "
        "their own, which `make peers-cache` makes; `cache_eval --peers FILE` puts the lines into the tables."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--python", type=Path, required=True, help="that of the peers' environment")
        parser.add_argument(
            "--set",
            action="append",
            choices=RUNS,
            help="only this set; may be repeated, and the lines of other sets stay",
        )
        parser.add_argument(
            "--out", type=Path, required=True, metavar="FILE", help="where the lines go, as JSON"
        )

    def handle(self, *args: Any, python: Path, out: Path, **options: Any) -> None:
        embed = vectors.kept_in(Path(settings.CONFIG.data_dir) / "evaluation")
        asked = [compare.asked_of(name) for name in options["set"] or RUNS]
        lines = compare.answered(asked, embed, python.absolute())
        out.parent.mkdir(parents=True, exist_ok=True)
        kept = json.loads(out.read_text(encoding="utf-8")) if out.exists() else {}
        out.write_text(json.dumps(kept | lines, indent=1) + "\n", encoding="utf-8")
        self.stdout.write(f"{out}: {', '.join(lines)}")
