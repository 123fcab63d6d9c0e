"""The rules' pages tell what rules did and how much of it was wrong, and let staff loosen what tightened itself."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.admin import site
from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.urls import reverse
from django.utils import timezone

from semcache.admin.budget import shown_time
from semcache.admin.pictures import HEIGHT, MAX_POINTS, WIDTH, bars, course
from semcache.admin.rules import CacheRuleAdmin
from semcache.models import CacheRule, CacheRuleHour
from semcache.quality import budget
from semcache.quality.hours import Tally
from semcache.rules.rulebook import RuleBook
from tests.semcache import factories
from tests.semcache.test_admin import ADD, GOOD, RULES
from tests.semcache.test_budget import sampled, served

pytestmark = pytest.mark.django_db


def page_of(staff, rule: CacheRule) -> str:
    return staff.get(reverse("admin:semcache_cacherule_change", args=[rule.pk])).content.decode()


def loosen_url(rule: CacheRule) -> str:
    return reverse("admin:semcache_loosen_rule", args=[rule.pk])


def test_the_list_shows_what_a_rule_did_and_how_much_was_wrong(staff):
    rule, now = factories.rule(name="used", wrong_share=0.5), timezone.now()
    counts = {"looks": 10, "exact_hits": 2, "semantic_hits": 3, "tokens_saved": 500, "ms_saved": 90_000.0}
    this_hour = now.replace(minute=0, second=0, microsecond=0)
    for age in (timedelta(hours=1), timedelta(hours=30), timedelta(days=31)):
        CacheRuleHour.objects.create(rule=rule, hour=this_hour - age, **counts)
    sampled(rule, 40, 4)
    budget.record(rule.pk, "thumb", True)
    factories.rule(name="never used")
    factories.rule(name="wild", tightened="exact", tightened_at=now)
    used, unused, wild = staff.get(RULES).context["cl"].result_list
    admin = CacheRuleAdmin(CacheRule, site)
    assert admin.saved(used) == "1000 · 3.0 min"
    day = admin.hit_rate(used)
    assert "50%" in day and day.count("<title>") == 1 and "<title>5 / 10</title>" in day
    assert admin.wrong(used) == "10.0% (0.8% – 35.0%) · 1 / 6"
    assert [admin.hit_rate(unused), admin.saved(unused), admin.wrong(unused)] == ["–", "–", "–"]
    assert "badge" in admin.wrong(wild) and "exact only" in admin.wrong(wild)


def test_the_list_costs_the_same_for_many_rules(staff, django_assert_max_num_queries):
    for _ in range(8):
        served(factories.rule(), 5)
    with django_assert_max_num_queries(10):
        staff.get(RULES)


def test_a_rules_page_tells_its_figures_with_pictures_and_no_inline_style(staff):
    rule = factories.rule(wrong_share=0.5)
    served(rule, 100)
    sampled(rule, 20, 2)
    page = page_of(staff, rule)
    assert "2 / 20" in page and "0 / 100" in page and "proxy" in page
    assert 'class="band"' in page and 'class="hit"' in page and " style=" not in page


def test_a_rule_without_checks_has_no_picture_of_them(staff):
    page = page_of(staff, factories.rule())
    assert 'class="band"' not in page and "0 / 0" in page


def test_a_tightened_rule_says_so_and_is_loosened_by_one_audited_click(staff):
    rule = factories.rule()
    assert "Loosen" not in page_of(staff, rule)
    sampled(rule, 2, 2)
    page = page_of(staff, rule)
    assert "tightened itself" in page and "second opinion" in page and loosen_url(rule) in page
    assert staff.get(loosen_url(rule)).status_code == 405
    for _ in range(2):
        assert staff.post(loosen_url(rule)).status_code == 302
    assert RuleBook().fresh()[0].tightened == ""
    assert LogEntry.objects.latest("id").change_message == "tightened: verify -> no"
    assert LogEntry.objects.count() == 2, "nothing was done the second time"
    assert staff.post(reverse("admin:semcache_loosen_rule", args=[999_999])).status_code == 404


def test_a_reader_sees_the_figures_and_does_not_loosen(client):
    rule = factories.rule(tightened="verify", tightened_at=timezone.now())
    user = get_user_model().objects.create_user(username="reader", is_staff=True)
    client.force_login(user)
    user.user_permissions.add(Permission.objects.get(codename="view_cacherule"))
    page = page_of(client, rule)
    assert "tightened itself" in page and loosen_url(rule) not in page
    assert client.post(loosen_url(rule)).status_code == 403
    rule.refresh_from_db()
    assert rule.tightened == "verify"


@pytest.mark.parametrize("field", ["wrong_share", "check_share"])
@pytest.mark.parametrize("bad", ["", "-0.1", "1.01", "1 %", "nan"])
def test_a_share_that_is_none_is_named_at_its_field(staff, field, bad):
    response = staff.post(ADD, GOOD | {field: bad})
    assert list(response.context["adminform"].form.errors) == [field]
    assert not CacheRule.objects.exists()


def points(text: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in (pair.split(",") for pair in text.split())]


def test_the_picture_stays_in_its_frame_and_ends_with_the_last_check():
    found = course([False, True] * 150, 0.01)
    assert found is not None and found.num == 300
    line, band = points(found.line), points(found.band)
    assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in line + band)
    assert len(line) <= MAX_POINTS and line[-1][0] == WIDTH and len(band) == 2 * len(line)
    assert line[-1][1] == pytest.approx(HEIGHT * (1 - 0.5 / found.top), abs=0.1)
    assert course([], 0.01) is None


def test_hours_are_scaled_to_the_busiest():
    found = bars([Tally(looks=10, exact_hits=4, semantic_hits=1), Tally(), Tally(looks=5)])
    assert [bar.looks_height for bar in found] == [HEIGHT, 0, HEIGHT / 2]
    assert (found[0].hits_height, found[0].hits_top) == (HEIGHT / 2, HEIGHT / 2)
    assert not any(bar.looks_height for bar in bars([Tally()] * 3))


@pytest.mark.parametrize(
    ("ms", "said"),
    [(0, "0 s"), (59_000, "59 s"), (90_000, "1.5 min"), (5_400_000, "1.5 h"), (9e8, "250.0 h")],
)
def test_time_is_told_in_its_largest_unit(ms, said):
    assert shown_time(ms) == said
