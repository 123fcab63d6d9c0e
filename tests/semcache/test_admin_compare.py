"""The page of a comparison: begun from a tried question, looked at until it has ended, with what differs marked."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.urls import reverse
from django.utils import timezone

from semcache import tasks
from semcache.admin.compare import TROUBLES
from semcache.decision import Answer
from semcache.lending import NotMade, WhyNot
from semcache.models import CacheComparison
from semcache.quality import comparisons
from tests.semcache.test_admin_try import OPPOSITE, PAGE, SAME, lent, stored
from tests.semcache.test_comparisons import model

pytestmark = pytest.mark.django_db
__all__ = ["lent", "model", "stored"]

BEGIN = reverse("admin:semcache_compare")
BUTTON = "Run the model and compare"


@pytest.fixture(autouse=True)
def sent(monkeypatch) -> list[bool]:
    """How often a worker was called."""
    calls: list[bool] = []
    monkeypatch.setattr(tasks.make_comparisons, "delay", lambda: calls.append(True))
    return calls


def begun(client: Any, stored: Any, **values: Any) -> Any:
    return client.post(BEGIN, SAME | {"entry": stored.pk} | values)


def person(name: str, *permissions: str) -> Any:
    user = get_user_model().objects.create_user(username=name, is_staff=True)
    user.user_permissions.add(*Permission.objects.filter(codename__in=permissions))
    return user


def page_of(client: Any, stored: Any, said: str = "") -> str:
    """The page when it has ended."""
    place = begun(client, stored).url
    tasks.make_comparisons()
    text: str = client.get(place).content.decode()
    return text


def test_every_stored_question_can_be_compared_also_one_that_is_not_served(staff, stored):
    for asked in (SAME, OPPOSITE):
        page = staff.get(PAGE, asked).content.decode()
        assert BUTTON in page and f'form="compare" name="entry" value="{stored.pk}"' in page
        hidden = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', page))
        assert {name: hidden[name] for name in asked} == asked


def test_a_worker_is_told_and_the_page_looks_again_until_it_has_ended(
    staff, stored, sent, django_capture_on_commit_callbacks
):
    with django_capture_on_commit_callbacks(execute=True):
        response = begun(staff, stored)
    row = CacheComparison.objects.get()
    assert response.status_code == 302 and response.url == reverse("admin:semcache_comparison", args=[row.pk])
    assert sent == [True]
    waiting = staff.get(response.url).content.decode()
    assert 'http-equiv="refresh"' in waiting and "looks again by itself" in waiting
    tasks.make_comparisons()
    ended = staff.get(response.url).content.decode()
    assert 'http-equiv="refresh"' not in ended and "made in 1234 ms" in ended


def test_the_page_says_when_no_worker_comes(staff, stored):
    place = begun(staff, stored).url
    CacheComparison.objects.update(created_at=timezone.now() - timedelta(minutes=1))
    assert "It waits for a worker. Is one running?" in staff.get(place).content.decode()


def test_what_differs_is_marked_on_both_sides_and_nothing_is_markup(staff, stored, model):
    stored.answer = "Open the settings, then <b>Security</b>, then two-step."
    stored.save()
    model.says = Answer("Open the profile, then <b>Security</b>, then two-step.", is_complete=True)
    page = page_of(staff, stored)
    assert "<del>settings</del>" in page and "<ins>profile</ins>" in page
    assert "&lt;b&gt;Security" in page and "<b>Security" not in page
    assert not re.search(
        r"<[^>]+\sstyle=|<script(?![^>]*\ssrc=)[^>]*>\s*\S", page.partition('id="content"')[2]
    )


def test_chinese_is_marked_by_characters(staff, stored, model):
    stored.answer = "打开设置，选择安全。"
    stored.save()
    model.says = Answer("打开设置，选择隐私。", is_complete=True)
    page = page_of(staff, stored)
    assert "<del>安全</del>" in page and "<ins>隐私</ins>" in page


def test_the_checks_word_stands_above(staff, stored, model):
    model.says = Answer("So.", is_complete=True)
    page = page_of(staff, stored)
    assert "The same answer, says the check" in page and "Not a word is different." in page
    model.says = Answer("Bananas grow in Ecuador.", is_complete=True)
    assert "Another answer, says the check" in page_of(staff, stored)


def test_a_refusal_is_called_one(staff, stored, model):
    model.says = Answer("I'm sorry, but I can't help with that.", is_complete=True)
    assert "The model refuses to answer." in page_of(staff, stored)


@pytest.mark.parametrize("why", list(WhyNot))
def test_why_there_is_no_answer_is_told(staff, stored, model, why):
    model.says = NotMade(why)
    page = page_of(staff, stored)
    assert str(TROUBLES[why]) in page and "<ins>" not in page


def test_half_an_answer_is_told_to_be_one(staff, stored, model):
    model.says = Answer("Half of", is_complete=False)
    page = page_of(staff, stored)
    assert "The answer is not whole" in page and "Half of" in page and "says the check" not in page


def test_long_answers_are_shown_unmarked(staff, stored, model):
    model.says = Answer("many words " * 6000, is_complete=True)
    page = page_of(staff, stored)
    assert "too long to mark" in page and "many words" in page and "<ins>" not in page


def test_an_answer_that_is_gone_leads_back_to_the_question(staff, stored):
    type(stored).objects.all().delete()
    response = begun(staff, stored)
    back = urlsplit(response.url)
    assert back.path == PAGE and parse_qs(back.query)["text"] == [SAME["text"]]
    assert "not there any more" in staff.get(response.url).content.decode()


def test_a_second_one_leads_to_the_first(staff, stored):
    first = begun(staff, stored).url
    assert begun(staff, stored).url == first
    assert "has not ended yet" in staff.get(first).content.decode()
    assert CacheComparison.objects.count() == 1


@pytest.mark.parametrize("wrong", [{"text": ""}, {"entry": "x"}, {"entry": -1}, {"entry": 2**63}])
def test_what_makes_no_sense_is_refused(staff, stored, wrong):
    assert begun(staff, stored, **wrong).status_code == 400
    assert CacheComparison.objects.count() == 0


def test_it_takes_both_permissions(client, staff, stored):
    place = begun(staff, stored).url
    for number, rights in enumerate([(), ("view_cacherule",), ("view_cacheentry",)]):
        client.force_login(person(f"p{number}", *rights))
        assert begun(client, stored).status_code == 403
        assert client.get(place).status_code == 403
        assert (
            client.get(PAGE, SAME).status_code == 403 or BUTTON not in client.get(PAGE, SAME).content.decode()
        )
    client.force_login(person("both", "view_cacherule", "view_cacheentry"))
    assert begun(client, stored).status_code == 302
    assert client.get(place).status_code == 200


def test_it_begins_by_post_only_and_an_unknown_one_is_not_found(staff, stored):
    assert staff.get(BEGIN).status_code == 405
    assert staff.get(reverse("admin:semcache_comparison", args=[999_999])).status_code == 404


def test_a_project_that_lends_no_model_shows_no_button(staff, stored, settings):
    settings.SEMCACHE_ANSWERED_BY = ""
    assert BUTTON not in staff.get(PAGE, SAME).content.decode()


def test_every_trouble_has_words():
    named = {
        comparisons.NOT_TAKEN,
        comparisons.DIED,
        comparisons.FAILED,
        comparisons.EMPTY,
        comparisons.CUT_OFF,
    }
    assert set(TROUBLES) == set(WhyNot) | named
