"""The command that tests a question says what the admin's page says."""

from __future__ import annotations

import json

import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse

from tests.semcache import factories
from tests.semcache.test_admin_try import OPPOSITE, SAME, lent, stored

pytestmark = pytest.mark.django_db
__all__ = ["lent", "stored"]


def said(capsys, text: str, **options: object) -> str:
    call_command("cachetest", text, **options)
    return capsys.readouterr().out


def test_a_hit_is_told_with_rule_entry_and_steps(staff, stored, capsys):
    told = said(capsys, SAME["text"], tenant=SAME["tenant"], owner=SAME["owner"])
    assert "rule 50 Everything: decides" in told
    assert "decision: hit-exact (exact)" in told
    assert f"entry {stored.pk}, 1.0000, served: how do I switch on two-step login?" in told
    assert "steps: rule " in told


def test_a_miss_is_told_with_the_guards_objection_and_the_comparison(staff, stored, capsys):
    told = said(capsys, OPPOSITE["text"], tenant=SAME["tenant"], owner=SAME["owner"], stored=SAME["text"])
    assert "decision: miss (guarded)" in told
    assert "  opposites: " in told and "compared, opposites: " in told


def test_the_json_is_the_admins(staff, stored, capsys):
    printed = json.loads(said(capsys, OPPOSITE["text"], tenant="default", owner="user:1", json=True))
    page = staff.get(reverse("admin:semcache_try_json"), OPPOSITE).json()
    for answer in (printed, page):
        answer["decision"].pop("steps_ms")
    assert printed == page


def test_without_an_engine_the_rules_are_told(staff, settings, capsys):
    settings.SEMCACHE_ASKED_BY = "tests.semcache.lender.nobody"
    factories.rule(name="Everything")
    assert "decision: none" in said(capsys, "how do I log in?")


def test_an_empty_question_is_refused(staff):
    with pytest.raises(CommandError, match="text"):
        call_command("cachetest", " ")
