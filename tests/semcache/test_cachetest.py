"""The command that tests a question says what the admin's page says."""

from __future__ import annotations

import json

import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse

from semcache.decision import Answer
from semcache.lending import NotMade, WhyNot
from semcache.models import CacheCase
from tests.semcache import factories
from tests.semcache.test_admin_try import OPPOSITE, SAME, lent, stored
from tests.semcache.test_cases import case_of
from tests.semcache.test_comparisons import model

pytestmark = pytest.mark.django_db
__all__ = ["lent", "model", "stored"]
AS = {"tenant": SAME["tenant"], "owner": SAME["owner"]}


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


def test_the_models_answer_is_put_beside_the_nearest_stored_one(staff, stored, model, capsys):
    stored.answer = "Open the settings, then Security."
    stored.save()
    model.says = Answer("Open the profile, then Security.", is_complete=True)
    told = said(capsys, OPPOSITE["text"], compare=True, **AS)
    assert "compared with the model's answer: the same" in told
    assert f"stored {stored.pk}: Open the [-settings-], then Security." in told
    assert "now: Open the {+profile+}, then Security." in told
    assert model.asked == [(OPPOSITE["text"], "default", "")]
    printed = json.loads(said(capsys, OPPOSITE["text"], compare=True, json=True, **AS))["comparison"]
    assert (printed["entry"], printed["result"]["is_same"]) == (stored.pk, True)


def test_trouble_with_the_model_is_told(staff, stored, model, settings, capsys):
    model.says = NotMade(WhyNot.AWAY)
    assert "The engine cannot be reached" in said(capsys, SAME["text"], compare=True, **AS)
    settings.SEMCACHE_ANSWERED_BY = ""
    with pytest.raises(CommandError, match="lends no model"):
        call_command("cachetest", SAME["text"], compare=True, **AS)


def test_without_a_stored_answer_there_is_nothing_to_compare(staff, model):
    factories.rule(name="Everything")
    with pytest.raises(CommandError, match="no stored answer"):
        call_command("cachetest", "how do I log in?", compare=True)
    assert model.asked == []


# Regression cases.


def run_cases(capsys, **options: object) -> tuple[str, int]:
    """What was printed, and the exit code."""
    try:
        call_command("cachetest", cases=True, **options)
    except CommandError as error:
        return capsys.readouterr().out + str(error), error.returncode
    return capsys.readouterr().out, 0


def test_all_cases_are_run_and_the_exit_code_says_whether_one_failed(staff, stored, settings, capsys):
    settings.SEMCACHE_RUN_BY = ""
    assert run_cases(capsys) == ("all of 0 cases passed\n", 0)
    case_of(SAME, "hit")
    told, code = run_cases(capsys)
    assert "passed: Hit: the same words" in told and "all of 1 cases passed" in told and code == 0
    case_of(OPPOSITE, "hit")
    told, code = run_cases(capsys)
    assert "failed: expected was: a stored answer is served" in told
    assert told.endswith("1 of 2 cases failed.") and code == 1
    assert CacheCase.objects.filter(state="failed").count() == 1


def test_cases_that_could_not_be_judged_are_no_success(staff, stored, settings, capsys):
    settings.SEMCACHE_RUN_BY = ""
    case_of(SAME, "hit")
    settings.SEMCACHE_ASKED_BY = "tests.semcache.lender.nobody"
    told, code = run_cases(capsys)
    assert "not judged" in told and code == 2
    CacheCase.objects.update(state="failed")
    assert run_cases(capsys)[1] == 2, "how it went before is no word about now"


def test_cases_are_told_as_json(staff, stored, settings, capsys):
    settings.SEMCACHE_RUN_BY = ""
    case_of(SAME, "miss")
    with pytest.raises(CommandError) as call:
        call_command("cachetest", cases=True, json=True)
    assert call.value.returncode == 1
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["state"], row["problems"], row["is_judged"]) == ("failed", ["outcome"], True)
    assert row["got"]["outcome"] == "hit-exact" and row["ran_at"] and not row["is_due"]


def test_cases_go_to_a_file_and_come_back(staff, stored, tmp_path, capsys):
    file = tmp_path / "cases.jsonl"
    case_of(SAME, "hit")
    call_command("cache_cases", "export", file)
    CacheCase.objects.all().delete()
    call_command("cache_cases", "import", file)
    call_command("cache_cases", "import", file)
    printed = capsys.readouterr().out.splitlines()
    assert printed == ["1 written", "1 added, 0 there already", "0 added, 1 there already"]
    file.write_text("{")
    for wrong, said in ((file, "Line 1: no JSON"), (tmp_path / "none", "No such file")):
        with pytest.raises(CommandError, match=said):
            call_command("cache_cases", "import", wrong)
