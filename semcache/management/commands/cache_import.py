"""`manage.py cache_import FILE --rule NAME`: stores the questions and answers of a file, as the admin's page does.

Needs no worker. Killed, it is gone on with by the workers; run again, it stores what is missing.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections import Counter
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from semcache import lending
from semcache.admin.audit import note_by_itself
from semcache.imports import batches as imports
from semcache.imports.file import Row, UnreadableFile, read_rows
from semcache.imports.rows import Judged, NobodyToAsk, Terms, judged
from semcache.models import CacheImport, CacheRule

NUM_SHOWN = 20


class Command(BaseCommand):
    help = "Store the questions and answers of a CSV or JSON lines file (UTF-8) as answers of a rule."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--rule", required=True, help="the rule's name; it must share its answers")
        parser.add_argument(
            "--tenant", default="", help="the business line, for a rule that shares within one"
        )
        parser.add_argument("--system-prompt", default="", help="for chats with exactly this one")
        parser.add_argument(
            "--may-name-people", action="store_true", help="take answers that look like personal data, too"
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="say what would be stored, and store nothing"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        rule = _rule(options["rule"], options["tenant"])
        terms = Terms(
            rule.pk, rule.tenant or options["tenant"], options["system_prompt"], options["may_name_people"]
        )
        found = _judged(options["file"], terms)
        num_accepted = self._tell(found)
        if options["dry_run"] or num_accepted == 0:
            return
        if rule.entries.count() + num_accepted > rule.capacity:
            raise CommandError(f"the rule keeps {rule.capacity} answers and holds {rule.entries.count()}.")
        begun = imports.start(options["file"].name, found, terms)
        note_by_itself(
            rule, f"import of {begun.file_name}: {begun.num_rows} rows, {begun.num_refused} refused"
        )
        self._store(begun)

    def _tell(self, found: list[Judged]) -> int:
        """Says which rows are refused; how many are not."""
        refused = [one for one in found if one.why is not None]
        for one in refused[:NUM_SHOWN]:
            self.stdout.write(f"line {one.row.line}: {one.why} {one.about}".rstrip())
        counted = ", ".join(f"{why} {num}" for why, num in Counter(str(one.why) for one in refused).items())
        num_accepted = len(found) - len(refused)
        self.stdout.write(
            f"{num_accepted} of {len(found)} rows can be stored{': ' if counted else ''}{counted}"
        )
        return num_accepted

    def _store(self, begun: CacheImport) -> None:
        while imports.store_next(begun.pk):
            begun.refresh_from_db(fields=["num_done", "num_rows"])
            self.stdout.write(f"{begun.num_done} of {begun.num_rows}")
        begun.refresh_from_db(fields=["state", "trouble", "num_done", "num_refused"])
        if begun.state != CacheImport.State.DONE:
            raise CommandError(f"{begun.num_done} stored so far; a worker goes on: {begun.trouble}")
        self.stdout.write(f"{begun.num_done} stored, {begun.num_refused} refused")


def _rule(name: str, tenant: str) -> CacheRule:
    rule = CacheRule.objects.filter(name=name, is_enabled=True).exclude(sharing="private").first()
    if rule is None:
        raise CommandError(f"there is no enabled rule {name!r} that shares its answers.")
    if rule.sharing == CacheRule.Sharing.TENANT and not (rule.tenant or tenant):
        raise CommandError("this rule shares within a business line: --tenant says which.")
    return rule


def _judged(file: Path, terms: Terms) -> list[Judged]:
    try:
        rows: list[Row] = read_rows(file.read_bytes())
        return lending.run(judged, rows, terms, False)
    except UnreadableFile as problem:
        raise CommandError(f"{file.name}: {problem}") from None
    except NobodyToAsk:
        raise CommandError("the engine does not say what it serves.") from None
    except OSError as problem:
        raise CommandError(str(problem)) from None
