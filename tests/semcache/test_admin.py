"""The operator's pages: bad values named at their field, presets, and the page that explains a question."""

from __future__ import annotations

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_user_model
from django.urls import reverse

from semcache.models import CacheRule
from semcache.presets import PRESETS
from semcache.rulebook import RuleBook
from tests.semcache import factories
from tests.semcache.test_eviction import rows, use
from tests.semcache.test_rulebook import Clock

pytestmark = pytest.mark.django_db

RULES = reverse("admin:semcache_cacherule_changelist")
ADD = reverse("admin:semcache_cacherule_add")
ENTRIES = reverse("admin:semcache_cacheentry_changelist")
GOOD = {
    "name": "new", "is_enabled": "on", "priority": "5", "pattern": "weather", "keywords": "", "tenant": "", "model": "",
    "mode": "semantic", "sharing": "private", "ttl_s": "600", "stale_s": "0", "accept_similarity": "0.95",
    "verify_similarity": "0.9", "max_temperature": "1", "capacity": "100", "tags": "",
}  # fmt: skip


def test_a_good_rule_is_saved(staff):
    assert staff.post(ADD, GOOD).status_code == 302
    assert CacheRule.objects.get().pattern == "weather"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("pattern", bad) for bad in ("*", "(", "[a-", "\\", "(?=x)", "a" * 5000, "a\x00b")),
        *(("ttl_s", bad) for bad in ("", "0", "-5", "1e12", "1000000000000", "10 minutes", "315360001")),
        ("verify_similarity", "0.99"),
        ("accept_similarity", "1.5"),
        ("capacity", "0"),
        ("name", "a\x00b"),
        ("name", ""),
    ],
)
def test_a_bad_value_is_named_at_its_field_and_nothing_is_saved(staff, field, value):
    response = staff.post(ADD, GOOD | {field: value})
    assert response.status_code == 200
    assert field in response.context["adminform"].form.errors
    assert not CacheRule.objects.exists()


@pytest.mark.parametrize("pattern", ["", ".*"])
def test_a_rule_that_matches_everything_may_be_saved_and_is_shown_as_such(staff, pattern):
    assert staff.post(ADD, GOOD | {"pattern": pattern}).status_code == 302
    shown = staff.get(RULES).content.decode()
    assert ("every question" in shown) is (pattern == "")


def test_ten_years_are_allowed(staff):
    assert staff.post(ADD, GOOD | {"ttl_s": "315360000"}).status_code == 302


def test_the_form_says_what_an_empty_matcher_means(staff):
    assert "matches every question" in staff.get(ADD).content.decode()


def test_the_list_shows_entries_and_hits_with_few_queries(staff, django_assert_max_num_queries):
    for number in range(5):
        use(rows(factories.rule(name=f"weather {number}", ttl_s=86_400), 3, name=f"n{number}")[0])
    with django_assert_max_num_queries(9):
        shown = staff.get(RULES).content.decode()
    assert "weather 4" in shown and "1 d" in shown and ">3</a>" in shown


def test_presets_are_added_once_by_post_and_never_by_get(staff):
    url = reverse("admin:semcache_add_presets")
    assert staff.get(url).status_code == 405
    factories.rule(name="Weather", ttl_s=5)
    for _ in range(2):
        assert staff.post(url).status_code == 302
    assert CacheRule.objects.count() == len(PRESETS)
    assert CacheRule.objects.get(name="Weather").ttl_s == 5


def test_the_page_to_try_a_question_names_the_rule_that_decides(staff):
    factories.rule(name="general weather", keywords=["weather"], priority=10)
    factories.rule(name="weather of Oslo", keywords=["weather in Oslo"], priority=10)
    factories.rule(name="broken one", pattern="(")
    url = reverse("admin:semcache_try_question")
    response = staff.get(url, {"text": "weather in Oslo today", "stored": "weather in Bergen today"})
    explanation = response.context["explanation"]
    assert explanation.winner.name == "weather of Oslo"
    assert [tried.rule.name for tried in explanation.rules if tried.problem] == ["broken one"]
    assert [verdict.check for verdict in explanation.verdicts if not verdict.passed] == ["content"]
    assert staff.get(url).status_code == 200
    assert staff.get(url, {"text": ""}).status_code == 200


@pytest.mark.parametrize(
    "name", ["semcache_cacherule_changelist", "semcache_try_question", "semcache_cacheentry_changelist"]
)
def test_nobody_without_the_permission_enters(client, name):
    url = reverse(f"admin:{name}")
    assert client.get(url).status_code == 302
    client.force_login(
        get_user_model().objects.create_user(username="staff", password="x" * 12, is_staff=True)
    )
    assert client.get(url).status_code == 403


def test_presets_need_the_permission_to_add(client):
    client.force_login(
        get_user_model().objects.create_user(username="staff", password="x" * 12, is_staff=True)
    )
    assert client.post(reverse("admin:semcache_add_presets")).status_code == 403


def test_the_pages_hold_no_inline_script_or_style(staff):
    factories.rule()
    for url in (RULES, ADD, ENTRIES, reverse("admin:semcache_try_question") + "?text=weather"):
        page = staff.get(url).content.decode()
        assert " style=" not in page and " onclick=" not in page
        assert all('type="application/json"' in tag or "src=" in tag for tag in page.split("<script")[1:])


def test_a_change_says_in_the_log_what_was_and_what_is(staff):
    rule = factories.rule(name="Weather", pattern="weather", ttl_s=600)
    url = reverse("admin:semcache_cacherule_change", args=[rule.pk])
    staff.post(url, GOOD | {"name": "Weather", "ttl_s": "60", "priority": "50", "keywords": "rain,snow"})
    line = LogEntry.objects.get()
    assert "ttl_s: 600 -> 60" in line.change_message
    assert "keywords:  -> rain, snow" in line.change_message
    assert "priority" not in line.change_message
    assert line.object_repr == "Weather"


def test_a_change_acts_in_every_process_within_two_seconds(staff):
    rule = factories.rule(name="Weather", pattern="weather", ttl_s=600)
    clock = Clock()
    here, elsewhere = RuleBook(clock), RuleBook(clock)
    assert [book.fresh()[0].ttl_s for book in (here, elsewhere)] == [600, 600]
    url = reverse("admin:semcache_cacherule_change", args=[rule.pk])
    staff.post(url, GOOD | {"name": "Weather", "ttl_s": "60"})
    clock.now = 2.001
    assert [book.fresh()[0].ttl_s for book in (here, elsewhere)] == [60, 60]


def test_added_presets_are_in_the_log(staff):
    staff.post(reverse("admin:semcache_add_presets"))
    assert "presets added: Payment and orders, Weather" in LogEntry.objects.get().change_message
