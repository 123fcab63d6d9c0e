"""The list of regression cases: saved from a tried question, run again, audited without a word, shown to readers."""

from __future__ import annotations

import html
import json
import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from semcache import tasks
from semcache.admin.case_words import PROBLEMS
from semcache.models import CacheCase, CacheRule
from semcache.quality.cases import Problem
from tests.semcache.test_admin_compare import person
from tests.semcache.test_admin_try import OPPOSITE, PAGE, SAME, lent, stored
from tests.semcache.test_cases import case_of

pytestmark = pytest.mark.django_db
__all__ = ["lent", "stored"]

LIST = reverse("admin:semcache_cachecase_changelist")
ADD = reverse("admin:semcache_cachecase_add")
IMPORT = reverse("admin:semcache_import_cases")
RUN = reverse("admin:semcache_run_cases")
RULES = reverse("admin:semcache_cacherule_changelist")
QUESTION = "How do I switch on two-step login?"


@pytest.fixture(autouse=True)
def sent(monkeypatch, settings) -> list[bool]:
    """How often a worker was called."""
    settings.SEMCACHE_RUN_BY = ""
    calls: list[bool] = []
    monkeypatch.setattr(tasks.run_cases, "delay", lambda: calls.append(True))
    return calls


def link_on(page: str, words: str) -> str:
    (found,) = re.findall(rf'href="([^"]+)">{words}<', page)
    return html.unescape(found)


def offered(client: Any, url: str) -> dict[str, str]:
    """What the form would send as it stands."""
    form = client.get(url).context["adminform"].form
    return {name: "" if (value := form[name].value()) is None else str(value) for name in form.fields}


def test_what_has_just_happened_is_saved_in_two_clicks(
    staff, stored, sent, django_capture_on_commit_callbacks
):
    CacheRule.objects.update(mode="semantic")
    link = link_on(staff.get(PAGE, SAME).content.decode(), "Save as regression case")
    values = offered(staff, link)
    assert values["question"] == SAME["text"] and values["expected"] == "hit"
    assert (values["tenant"], values["owner"], values["rule"]) == ("default", "user:1", "Everything")
    assert values["stored_question"] == stored.question
    with django_capture_on_commit_callbacks(execute=True):
        assert staff.post(ADD, values).status_code == 302
    assert sent == [True]
    assert tasks.run_cases() == 1
    case = CacheCase.objects.get()
    assert (case.state, case.problems) == ("passed", []) and case.generation == stored.generation


def test_an_answer_that_must_never_come_is_saved_beside_it(staff, stored):
    link = link_on(staff.get(PAGE, OPPOSITE).content.decode(), "Case: never serve this")
    values = offered(staff, link)
    assert (values["expected"], values["stored_question"]) == ("never", stored.question)
    assert staff.post(ADD, values).status_code == 302
    tasks.run_cases()
    assert CacheCase.objects.get().state == "passed"


def test_a_miss_is_saved_without_an_answer(staff, stored):
    values = offered(staff, link_on(staff.get(PAGE, OPPOSITE).content.decode(), "Save as regression case"))
    assert (values["expected"], values["stored_question"], values["entry"]) == ("miss", "", "")
    assert staff.post(ADD, values).status_code == 302


def test_the_answer_that_it_was_saved_from_is_known_and_one_that_is_gone_is_not_saved(staff, stored):
    stored.generation = "00000000-0000-0000-0000-000000000007"
    stored.save()
    values = offered(staff, link_on(staff.get(PAGE, SAME).content.decode(), "Save as regression case"))
    assert staff.post(ADD, values).status_code == 302
    assert str(CacheCase.objects.get().generation) == stored.generation
    type(stored).objects.all().delete()
    refused = staff.post(ADD, values | {"question": "another"})
    assert "not there any more" in refused.content.decode()
    assert CacheCase.objects.count() == 1


def test_whoever_erases_the_answer_meanwhile_waits_for_the_case(staff, stored):
    values = offered(staff, link_on(staff.get(PAGE, SAME).content.decode(), "Save as regression case"))
    with CaptureQueriesContext(connection) as asked:
        staff.post(ADD, values)
    assert any("cacheentry" in query["sql"] and query["sql"].endswith("FOR UPDATE") for query in asked)


def test_the_log_says_who_and_not_what(staff, stored):
    values = offered(staff, link_on(staff.get(PAGE, SAME).content.decode(), "Save as regression case"))
    staff.post(ADD, values)
    case = CacheCase.objects.get()
    change = reverse("admin:semcache_cachecase_change", args=[case.pk])
    staff.post(change, values | {"expected": "never", "question": "Zebras?", "entry": ""})
    staff.post(reverse("admin:semcache_cachecase_delete", args=[case.pk]), {"post": "yes"})
    lines = LogEntry.objects.filter(content_type__model="cachecase").order_by("pk")
    assert [line.change_message for line in lines][:2] == [
        "added: expects hit", "question; expected: hit -> never",
    ]  # fmt: skip
    assert len(lines) == 3
    told = " ".join(f"{line.object_repr} {line.change_message}" for line in lines)
    assert "login" not in told and "Zebras" not in told


def test_one_that_expects_something_else_now_has_never_been_run(staff, stored):
    case = case_of(SAME, "hit")
    tasks.run_cases()
    change = reverse("admin:semcache_cachecase_change", args=[case.pk])
    values = offered(staff, change)
    staff.post(change, values | {"note": "Why."})
    case.refresh_from_db()
    assert (case.state, case.note) == ("passed", "Why.") and case.rules_key
    staff.post(change, values | {"expected": "miss"})
    case.refresh_from_db()
    assert (case.state, case.rules_key, case.ran_at, case.got_outcome) == ("new", "", None, "")


def test_the_same_case_is_not_saved_twice(staff, stored):
    case_of(SAME, "hit")
    values = {
        "question": SAME["text"],
        "tenant": "default",
        "owner": "user:1",
        "expected": "hit",
        "note": "x",
    }
    assert "such a case already" in staff.post(ADD, values).content.decode()


def test_the_list_says_how_each_went_and_why(staff, stored):
    case_of(OPPOSITE, "hit", rule="Weather")
    case_of(SAME, "hit")
    tasks.run_cases()
    CacheCase.objects.filter(state="failed").update(ran_at=timezone.now() - timedelta(minutes=5))
    page = html.unescape(staff.get(LIST).content.decode())
    assert "expected was: a stored answer is served" in page
    assert f"{OPPOSITE['text']} (user:1 · default)" in page
    assert "the rule “Everything” decides, not “Weather”" in page
    assert "Miss: alike enough, but the guard found a difference" in page
    assert '<span class="state failed">failed</span>' in page and "5\xa0minutes" in page
    assert page.index('state failed"') < page.index('state passed"'), "failed ones first"


def test_the_page_of_a_case_says_what_came(staff, stored):
    case = case_of(SAME, "miss")
    tasks.run_cases()
    page = staff.get(reverse("admin:semcache_cachecase_change", args=[case.pk])).content.decode()
    assert "expected was: the model answers" in page and "Hit: the same words" in page
    assert f"{PAGE}?text=how%20do%20I" in page


def test_rules_say_above_their_list_that_cases_fail(staff, stored):
    case_of(SAME, "miss")
    assert "regression case" not in staff.get(RULES).content.decode().partition('id="content"')[2]
    tasks.run_cases()
    page = staff.get(RULES).content.decode()
    assert "1 regression case fails." in page and f"{LIST}?state__exact=failed" in page


def test_chosen_ones_or_all_are_run_again(staff, stored, sent, django_capture_on_commit_callbacks):
    one, other = case_of(SAME, "hit"), case_of(OPPOSITE, "miss")
    tasks.run_cases()
    with django_capture_on_commit_callbacks(execute=True):
        staff.post(LIST, {"action": "run_again", "_selected_action": [one.pk]})
    assert list(CacheCase.objects.filter(rules_key="")) == [one] and sent == [True]
    assert "1 case waits to be run." in staff.get(LIST).content.decode()
    with django_capture_on_commit_callbacks(execute=True):
        assert staff.post(RUN).status_code == 302
    assert CacheCase.objects.filter(rules_key="").count() == 2 and sent == [True, True]
    assert staff.get(RUN).status_code == 405 and other.pk


def test_a_list_of_many_asks_the_database_as_often_as_one_of_few(
    staff, stored, django_assert_max_num_queries
):
    for number in range(30):
        case_of(SAME | {"text": f"What is {number}?"}, "miss")
    with django_assert_max_num_queries(12):
        staff.get(LIST)


# Files.


def test_cases_go_out_and_come_in_again(staff, stored, sent, django_capture_on_commit_callbacks):
    case = case_of(SAME, "hit", stored_question=QUESTION)
    response = staff.post(LIST, {"action": "export_lines", "_selected_action": [case.pk]})
    assert response["Content-Disposition"] == 'attachment; filename="cases.jsonl"'
    assert json.loads(response.content)["stored_question"] == QUESTION
    CacheCase.objects.all().delete()
    with django_capture_on_commit_callbacks(execute=True):
        done = staff.post(IMPORT, {"file": SimpleUploadedFile("cases.jsonl", response.content)}, follow=True)
    assert "Added: 1; there already: 0." in done.content.decode() and sent == [True]
    assert CacheCase.objects.get().stored_question == QUESTION
    said = LogEntry.objects.filter(content_type__model="cachecase").values_list("change_message", flat=True)
    assert set(said) == {"exported 1", "imported 1, known 0"}


@pytest.mark.parametrize("files", [{}, {"file": SimpleUploadedFile("c.jsonl", b"{")}])
def test_a_file_that_is_refused_says_why(staff, files):
    page = staff.post(IMPORT, files).content.decode()
    assert ("Line 1: no JSON" if files else "Choose a file.") in page and "Nothing was added." in page
    assert CacheCase.objects.count() == 0


# Who may what.


def test_who_may_not_change_rules_sees_how_cases_go_and_changes_nothing(client, stored):
    case = case_of(SAME, "hit", stored_question="SECRET QUESTION", answer_part="SECRET WORDS")
    client.force_login(person("eye", "view_cacherule"))
    change = reverse("admin:semcache_cachecase_change", args=[case.pk])
    for url in (LIST, change):
        page = client.get(url).content.decode()
        assert client.get(url).status_code == 200 and "SECRET" not in page
    for url in (ADD, RUN, IMPORT, change):
        assert client.post(url, {"question": "a", "expected": "miss"}).status_code == 403
    assert "Save as regression case" not in client.get(PAGE, SAME).content.decode()
    assert CacheCase.objects.count() == 1


def test_who_may_not_see_entries_saves_cases_without_their_words(client, staff, stored):
    client.force_login(person("rules", "view_cacherule", "change_cacherule"))
    page = client.get(PAGE, SAME).content.decode()
    assert "Case: never serve this" not in page
    values = offered(client, link_on(page, "Save as regression case"))
    assert "stored_question" not in values and values["entry"] == ""
    assert client.post(ADD, values).status_code == 302
    case = CacheCase.objects.get()
    assert case.generation is None
    refused = client.post(LIST, {"action": "export_lines", "_selected_action": [case.pk]})
    assert refused.status_code == 403 and client.get(IMPORT).status_code == 403


def test_what_is_hidden_from_whoever_changes_a_case_stays(client, stored):
    case = case_of(SAME, "hit", stored_question=QUESTION)
    client.force_login(person("rules", "view_cacherule", "change_cacherule"))
    change = reverse("admin:semcache_cachecase_change", args=[case.pk])
    assert client.post(change, offered(client, change) | {"expected": "never"}).status_code == 302
    case.refresh_from_db()
    assert (case.expected, case.stored_question) == ("never", QUESTION)


def test_nobody_else_gets_in(client, db):
    client.force_login(person("none", "view_cacheentry"))
    for url in (LIST, ADD, IMPORT):
        assert client.get(url).status_code == 403
    assert client.post(RUN).status_code == 403


def test_every_problem_has_words():
    assert set(PROBLEMS) == set(Problem)
