"""`manage.py cachetest QUESTION`: what the page "Test a question" shows, on a terminal."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Iterator
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from semcache.admin.forms import TryQuestionForm
from semcache.admin.trial import Told, as_json, compared, shared, told
from semcache.explain import Explanation, TriedRule


class Command(BaseCommand):
    help = (
        "Shows the whole way of a question through the semantic cache, as the first one of a new chat without a system "
        "prompt: rules, neighbours, guard, verifier, times. Nothing is counted."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("text", metavar="QUESTION")
        parser.add_argument("--tenant", default="", help="the asker's business line")
        parser.add_argument("--owner", default="", help="who asks, as the entries name them, such as user:7")
        parser.add_argument("--model", default="", help="where rules name a model")
        parser.add_argument("--stored", default="", metavar="QUESTION", help="compare with this one, too")
        parser.add_argument("--json", action="store_true", help="print what the admin's JSON says")

    def handle(self, *args: Any, **options: Any) -> None:
        form = TryQuestionForm(options)
        if not form.is_valid():
            raise CommandError(form.errors.as_text())
        explanation, found = told(form.cleaned_data)
        if options["json"]:
            self.stdout.write(
                json.dumps(as_json(explanation, found, may_read=True), ensure_ascii=False, indent=1)
            )
            return
        for line in _lines(explanation, found):
            self.stdout.write(line)


def _lines(explanation: Explanation, found: Told | None) -> Iterator[str]:
    yield f"question: {explanation.text}"
    yield f"may be shared: {shared(explanation)}"
    for tried in explanation.rules:
        yield f"rule {tried.rule.priority} {tried.rule.name}: {_result(tried)}"
    yield from _decided(found) if found else ("decision: none, the engine does not say what it serves",)
    for check, passed, why in compared(explanation):
        yield f"compared, {check}: {'passed' if passed else why}"


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
