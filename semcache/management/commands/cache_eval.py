"""`manage.py cache_eval`: how much the semantic cache serves and how much of it is wrong, on labelled questions."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from semcache.evaluation import picture, report, vectors
from semcache.evaluation.peers.compare import with_peers
from semcache.evaluation.runs import QUICK, RUNS


class Command(BaseCommand):
    help = (
        "Measures the semantic cache on labelled questions, without a database and without an engine. The first run "
        "embeds 40,000 questions (minutes); the vectors are kept under DATA_DIR/evaluation."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--set", action="append", choices=RUNS, help="only this set; may be repeated")
        parser.add_argument("--quick", action="store_true", help=f"only {', '.join(QUICK)}")
        parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
        parser.add_argument("--out", type=Path, help="also write cache-eval.json and cache-eval.svg here")

        parser.add_argument(
            "--verifier", type=Path, metavar="FOLDER", help="a cross-encoder for the second opinion"
        )
        parser.add_argument(
            "--peers", type=Path, metavar="FILE", help="lines of cache_peers, to stand beside ours"
        )

    def handle(self, *args: Any, quick: bool, out: Path | None, **options: Any) -> None:
        kept = Path(settings.CONFIG.data_dir) / "evaluation"
        embed = vectors.kept_in(kept)
        verify = vectors.scored_by(options["verifier"], kept) if options["verifier"] else None
        chosen = options["set"] or (QUICK if quick else RUNS)
        peers = json.loads(options["peers"].read_text(encoding="utf-8")) if options["peers"] else {}
        sets = [with_peers(RUNS[name](embed, verify), peers) for name in chosen]
        as_json = json.dumps(report.as_json(sets), indent=1)
        self.stdout.write(as_json if options["json"] else report.table(sets))
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
            (out / "cache-eval.json").write_text(as_json + "\n", encoding="utf-8")
            (out / "cache-eval.svg").write_text(picture.svg(sets), encoding="utf-8")
