"""`manage.py cachetest QUESTION`: what the page "Test a question" shows, on a terminal. `--cases` instead runs every
regression case and ends with 1 where one fails, with 2 where one could not be judged."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from semcache import lending
from semcache.admin.case_words import came, case_json, why
from semcache.admin.compare import TROUBLES, wanted
from semcache.admin.forms import TryQuestionForm
from semcache.admin.trial import Told, as_json, compared, shared, told
from semcache.admin.words import worded
from semcache.explain import Explanation, TriedRule
from semcache.lending import may_be_answered
from semcache.models import CacheCase, CacheEntry
from semcache.quality import comparisons
from semcache.quality.cases import State, run_all
from semcache.quality.comparisons import NoSuchAnswer, Result, nearest
from semcache.text.difference import Piece, difference


class Command(BaseCommand):
    help = (
        "Shows the whole way of a question through the semantic cache, as the first one of a new chat without a system "
        "prompt: rules, neighbours, guard, verifier, times. Nothing is counted."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("text", metavar="QUESTION", nargs="?", default="")
        parser.add_argument(
            "--cases", action="store_true", help="run the regression cases instead; 1 where one fails"
        )
        parser.add_argument("--tenant", default="", help="the asker's business line")
        parser.add_argument("--owner", default="", help="who asks, as the entries name them, such as user:7")
        parser.add_argument("--model", default="", help="where rules name a model")
        parser.add_argument("--stored", default="", metavar="QUESTION", help="compare with this one, too")
        parser.add_argument(
            "--compare",
            action="store_true",
            help="let the model answer and compare it with the nearest stored answer",
        )
        parser.add_argument("--json", action="store_true", help="print what the admin's JSON says")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["cases"]:
            self._run_cases(options["json"])
        else:
            self._try_question(options)

    def _run_cases(self, as_rows: bool) -> None:
        ran = list(run_all())
        if as_rows:
            rows = [case_json(case, may_read=True) | {"is_judged": is_judged} for case, is_judged in ran]
            self.stdout.write(json.dumps(rows, ensure_ascii=False, indent=1))
        else:
            for case, is_judged in ran:
                self.stdout.write(_went(case, is_judged))
        num_failed = sum(is_judged and case.state == State.FAILED for case, is_judged in ran)
        num_open = sum(not is_judged for _, is_judged in ran)
        if num_failed:
            raise CommandError(f"{num_failed} of {len(ran)} cases failed.", returncode=1)
        if num_open:
            raise CommandError(f"{num_open} of {len(ran)} cases could not be judged now.", returncode=2)
        if not as_rows:
            self.stdout.write(f"all of {len(ran)} cases passed")

    def _try_question(self, options: dict[str, Any]) -> None:
        form = TryQuestionForm(options)
        if not form.is_valid():
            raise CommandError(form.errors.as_text())
        explanation, found = told(form.cleaned_data)
        beside = _compared(form.cleaned_data, found) if options["compare"] else None
        if options["json"]:
            said = as_json(explanation, found, may_read=True)
            said |= {} if beside is None else {"comparison": asdict(beside)}
            self.stdout.write(json.dumps(said, ensure_ascii=False, indent=1))
            return
        for line in (*_lines(explanation, found), *(_beside(beside) if beside else ())):
            self.stdout.write(line)


def _went(case: CacheCase, is_judged: bool) -> str:
    said = f"{case.state}: {why(case) or came(case)}" if is_judged else "not judged"
    return f"case {case.pk} {said}: {case.question[:100]}"


@dataclass(frozen=True, slots=True)
class Beside:
    """The nearest stored answer and what the model says now."""

    entry: int
    stored_question: str
    stored_answer: str
    result: Result


def _compared(values: dict[str, str], found: Told | None) -> Beside:
    if not may_be_answered():
        raise CommandError("the project lends no model (SEMCACHE_ANSWERED_BY).")
    try:
        entry_id = nearest(found.decision if found else None)
    except NoSuchAnswer:
        raise CommandError("there is no stored answer to compare with.") from None
    entry = CacheEntry.objects.filter(pk=entry_id).first()
    if entry is None:
        raise CommandError("the stored answer has gone meanwhile.")
    result = lending.run(comparisons.compared, wanted(values), entry.answer)
    return Beside(entry.pk, entry.question, entry.answer, result)


def _beside(beside: Beside) -> Iterator[str]:
    """As `wdiff` marks it: [-only stored-] {+only now+}."""
    result = beside.result
    if result.trouble:
        yield f"compared with the model's answer: {worded(TROUBLES, result.trouble)}"
    else:
        score = "" if result.score is None else f", verifier {result.score:.3f}"
        yield f"compared with the model's answer: {'the same' if result.is_same else 'another'}{score}"
    apart = difference(beside.stored_answer, result.made) if result.made else None
    yield f"stored {beside.entry}: {_marked(apart.one, '[-', '-]') if apart else beside.stored_answer}"
    yield f"now: {_marked(apart.other, '{+', '+}') if apart else result.made}"


def _marked(pieces: Sequence[Piece], begin: str, end: str) -> str:
    return "".join(f"{begin}{piece.text}{end}" if piece.is_other else piece.text for piece in pieces)


def _lines(explanation: Explanation, found: Told | None) -> Iterator[str]:
    yield f"question: {explanation.text}"
    yield f"may be shared: {shared(explanation)}"
    for tried in explanation.rules:
        yield f"rule {tried.rule.priority} {tried.rule.name}: {_result(tried)}"
    yield from _decided(found) if found else ("decision: none, the engine does not say what it serves",)
    for check, passed, objection in compared(explanation):
        yield f"compared, {check}: {'passed' if passed else objection}"


def _result(tried: TriedRule) -> str:
    result = (
        "decides" if tried.is_winner else "matches" if tried.is_match else tried.problem or "does not match"
    )
    near = tried.likeness
    return result if near is None else f"{result} (nearest example {near.similarity:.4f}: {near.example})"


def _decided(found: Told) -> Iterator[str]:
    yield f"decision: {found.decision.outcome} ({found.decision.reason}): {found.reason}"
    for one in found.shown:
        score = "" if one.score is None else f", verifier {one.score:.3f}"
        yield f"entry {one.entry_id}, {one.similarity:.4f}{score}{', served' if one.is_served else ''}: {one.question}"
        yield from (f"  {objection}" for objection in one.objections)
    yield "steps: " + ", ".join(f"{name} {ms:.2f} ms" for name, ms in found.decision.steps)
