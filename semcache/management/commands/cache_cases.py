"""`manage.py cache_cases export|import`: regression cases as JSON lines, to be kept in a repository."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from semcache.admin.case_file import UnreadableCases, add_lines, as_lines
from semcache.models import CacheCase


class Command(BaseCommand):
    help = "Write the regression cases of the cache to a file of JSON lines, or take those of a file."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("what", choices=["export", "import"])
        parser.add_argument("file", type=Path)

    def handle(self, *args: Any, **options: Any) -> None:
        do = self._export if options["what"] == "export" else self._import
        try:
            do(options["file"])
        except OSError as problem:
            raise CommandError(str(problem)) from None

    def _export(self, file: Path) -> None:
        listed = list(CacheCase.objects.order_by("pk"))
        file.write_text(as_lines(listed), encoding="utf-8")
        self.stdout.write(f"{len(listed)} written")

    def _import(self, file: Path) -> None:
        try:
            added = add_lines(file.read_bytes())
        except UnreadableCases as problem:
            raise CommandError(f"{file.name}: {problem}") from None
        self.stdout.write(f"{len(added.cases)} added, {added.num_known} there already")
