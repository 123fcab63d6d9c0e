"""The threshold tuner counts what the log saw, and applies a threshold with one audited click."""

from __future__ import annotations

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.urls import reverse
from django.utils import timezone

from semcache.admin.tuner import HEIGHT, Seen, bars, curve, seen_by
from semcache.models import CacheLook, CacheRule
from semcache.rules.rulebook import RuleBook
from tests.semcache import factories
from tests.semcache.test_eviction import rows

pytestmark = pytest.mark.django_db


def look(rule: CacheRule, similarity: float | None, outcome: str = "miss", **values) -> CacheLook:
    given = {
        "reason": "",
        "sharing": "public",
        "tenant": "default",
        "model": "small",
        "asked_at": timezone.now(),
    }
    return CacheLook.objects.create(rule=rule, similarity=similarity, outcome=outcome, **(given | values))


def url(rule: CacheRule) -> str:
    return reverse("admin:semcache_tune_rule", args=[rule.pk])


def a_seen(similarity: float, **facts: bool) -> Seen:
    return Seen(similarity, **({"is_hit": False, "is_guarded": False, "is_wrong": False} | facts))


def test_the_curve_counts_what_each_threshold_would_serve():
    seen = [a_seen(0.99, is_wrong=True), a_seen(0.95), a_seen(0.97, is_guarded=True), a_seen(0.5)]
    points = {point.threshold: point for point in curve(seen, 0.9)}
    assert (min(points), max(points), len(points)) == (0.9, 1.0, 21)
    assert (points[0.95].num_served, points[0.95].rate, points[0.95].num_wrong) == (2, 0.5, 1)
    assert (points[0.955].num_served, points[0.99].num_served, points[0.995].num_served) == (1, 1, 0)


def test_every_look_up_stands_in_one_bar_and_the_highest_fills_the_picture():
    seen = [a_seen(similarity) for similarity in (-0.2, 0.8, 0.8049, 0.805, 1.0, 1.0000001)]
    found = bars(seen)
    assert sum(bar.num_misses for bar in found) == len(seen)
    assert [found[0].num_misses, found[1].num_misses, found[-1].num_misses] == [3, 1, 2]
    assert found[0].blocks[0].height == HEIGHT


def test_a_log_without_look_ups_has_no_curve_to_fall_over():
    assert {point.rate for point in curve([], 0.95)} == {0.0}
    assert not any(bar.blocks for bar in bars([]))


def test_only_the_rules_own_look_ups_by_meaning_are_seen_and_marked_answers_are_wrong_hits(staff):
    rule, other = factories.rule(ttl_s=86_400), factories.rule()
    wrong, right = rows(rule, 2)
    look(rule, 0.97, "hit-semantic", neighbour=wrong.pk)
    look(rule, 0.96, "hit-semantic", neighbour=right.pk)
    look(rule, 1.0, "hit-exact", neighbour=right.pk)
    look(rule, None, reason="no-neighbour")
    look(other, 0.99)
    staff.post(reverse("admin:semcache_entry_act", args=[wrong.pk, "wrong-hit"]))
    staff.post(reverse("admin:semcache_entry_act", args=[right.pk, "evict"]))
    assert seen_by(rule) == [
        a_seen(0.96, is_hit=True),
        a_seen(0.97, is_hit=True, is_wrong=True),
    ]


def test_the_page_shows_the_picture_with_few_queries_and_no_inline_script(
    staff, django_assert_max_num_queries
):
    rule = factories.rule()
    for number in range(30):
        look(rule, 0.8 + number / 200, neighbour=number)
    with django_assert_max_num_queries(9):
        page = staff.get(url(rule)).content.decode()
    assert "<rect" in page and " style=" not in page
    assert all('type="application/json"' in tag or "src=" in tag for tag in page.split("<script")[1:])
    assert staff.get(url(factories.rule())).status_code == 200
    assert staff.get(reverse("admin:semcache_tune_rule", args=[999_999])).status_code == 404


def test_a_threshold_is_applied_with_one_click_audited_and_in_force(staff):
    rule = factories.rule()
    assert staff.post(url(rule), {"accept_similarity": "0.965"}).status_code == 302
    assert RuleBook().fresh()[0].accept_similarity == 0.965
    assert LogEntry.objects.get().change_message == "accept_similarity: 0.95 -> 0.965"


@pytest.mark.parametrize("bad", ["0.5", "1.01", "", "nan", "inf", "much"])
def test_a_threshold_out_of_range_is_refused(staff, bad):
    rule = factories.rule()
    response = staff.post(url(rule), {"accept_similarity": bad})
    assert response.status_code == 200
    assert response.context["form"].errors
    rule.refresh_from_db()
    assert rule.accept_similarity == 0.95


def test_a_reader_sees_and_does_not_apply(client):
    rule = factories.rule()
    assert client.get(url(rule)).status_code == 302
    user = get_user_model().objects.create_user(username="reader", is_staff=True)
    client.force_login(user)
    assert client.get(url(rule)).status_code == 403
    user.user_permissions.add(Permission.objects.get(codename="view_cacherule"))
    assert 'type="submit" value="Apply' not in client.get(url(rule)).content.decode()
    assert client.post(url(rule), {"accept_similarity": "0.99"}).status_code == 403
