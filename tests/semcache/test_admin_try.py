"""The page that tests a question shows the real decision, step by step and uncounted, and so does its JSON."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.urls import reverse

from semcache import pipeline, process, service
from semcache.admin.words import CHECKS, OUTCOMES, REASONS
from semcache.decision import Outcome, Reason
from semcache.models import CacheEntry, CacheRule
from semcache.text.guard import CHECKS as GUARD_CHECKS
from tests.semcache import factories

pytestmark = pytest.mark.django_db

PAGE = reverse("admin:semcache_try_question")
JSON = reverse("admin:semcache_try_json")
SAME = {"text": "how do I switch on two-step login?", "tenant": "default", "owner": "user:1"}
OPPOSITE = SAME | {"text": "How do I switch off two-step login?"}


@pytest.fixture(autouse=True)
def lent(settings, monkeypatch) -> None:
    """An embedder, and look-ups inside the test's own transaction."""
    settings.SEMCACHE_ASKED_BY = "tests.semcache.lender.as_asked"

    def here(work: Callable[..., Any], *args: Any, **named: Any) -> Awaitable[Any]:
        return sync_to_async(work)(*args, **named)

    for module in (service, pipeline):
        monkeypatch.setattr(module, "in_database", here)


@pytest.fixture
def stored(staff) -> CacheEntry:
    factories.rule(name="Everything", sharing="public", ttl_s=86_400)
    entry_id = async_to_sync(factories.store)(
        "How do I switch on two-step login?", "So.", factories.all_alike
    )
    return CacheEntry.objects.get(pk=entry_id)


def test_the_nearest_example_is_told_where_examples_decide(staff, stored):
    factories.rule(
        name="Logins", priority=1, mode="exact", examples=["can I sign in?"], example_similarity=0.99
    )
    factories.rule(name="Far", priority=2, mode="exact", examples=["can I sign in?"], example_similarity=1.0)
    service.forget_rules()
    page = staff.get(PAGE, SAME).content.decode()
    assert "nearest example: “can I sign in?”, 0.99" in page
    told = staff.get(JSON, SAME).json()
    assert told["decision"]["rule"] == "Logins"
    winner, far, everything = told["rules"]
    assert winner["is_winner"] and winner["nearest_example"]["is_near"]
    assert not far["is_match"] and not far["nearest_example"]["is_near"]
    assert everything["nearest_example"] is None


def test_an_exact_match_is_told_with_its_entry_and_is_not_counted(staff, stored):
    response = staff.get(PAGE, SAME)
    found = response.context["found"]
    assert found.decision.outcome is Outcome.HIT_EXACT
    assert [one.entry_id for one in found.shown] == [stored.pk]
    assert process.hits.flush() == 0
    page = response.content.decode()
    assert "Hit: the same words" in page
    for act in ("evict", "pin", "wrong-hit"):
        assert reverse("admin:semcache_entry_act", args=[stored.pk, act]) in page
    assert "?text=how%20do%20I" in page or "?text=how+do+I" in page


def test_a_guarded_neighbour_is_told_with_what_the_guard_says(staff, stored):
    response = staff.get(PAGE, OPPOSITE)
    (one,) = response.context["found"].shown
    assert response.context["found"].decision.reason is Reason.GUARDED
    assert one.similarity > 0.95 and not one.is_served
    assert any(objection.startswith("opposites: ") for objection in one.objections)
    assert "opposites: " in response.content.decode()


def test_a_hit_by_meaning_can_be_put_out_of_the_rules_reach(staff, stored):
    reworded = SAME | {"text": "Please, how do I switch on two-step login?"}
    response = staff.get(PAGE, reworded)
    (one,) = response.context["found"].shown
    assert one.is_served and 0 < float(one.raised) - one.similarity <= 0.0001
    rule, url = (
        CacheRule.objects.get(),
        reverse("admin:semcache_tune_rule", args=[CacheRule.objects.get().pk]),
    )
    assert (
        f'action="{url}"' in response.content.decode()
        and f'value="{one.raised}"' in response.content.decode()
    )
    assert staff.post(url, {"accept_similarity": one.raised}).status_code == 302
    rule.refresh_from_db()
    assert rule.accept_similarity == float(one.raised)
    again = staff.get(PAGE, reworded).context["found"]
    assert again.decision.reason is Reason.GREY_ZONE and [one.raised for one in again.shown] == [""]
    assert [one.raised for one in staff.get(PAGE, SAME).context["found"].shown] == [""], (
        "no threshold decides here"
    )


def test_the_json_says_the_same_with_codes_and_times(staff, stored):
    said = staff.get(JSON, OPPOSITE).json()
    assert said["decision"]["reason"] == "guarded"
    assert said["decision"]["rule"] == "Everything"
    (one,) = said["decision"]["candidates"]
    assert (one["entry"], one["is_served"], one["verifier_score"]) == (stored.pk, False, None)
    assert list(said["decision"]["steps_ms"]) == ["rule", "exact", "embed", "nearest", "guard"]
    assert [rule["is_winner"] for rule in said["rules"]] == [True]
    assert staff.get(JSON).status_code == 400
    assert "text" in staff.get(JSON, {"text": ""}).json()["errors"]


def test_a_private_answer_is_found_only_as_its_owner(staff):
    factories.rule(ttl_s=86_400)
    async_to_sync(factories.store)("What is a black hole?", "A star.", owner="user:7")
    for owner, outcome in (("user:7", "hit-exact"), ("user:8", "miss"), ("", "miss")):
        said = staff.get(JSON, {"text": "What is a black hole?", "tenant": "default", "owner": owner}).json()
        assert said["decision"]["outcome"] == outcome


def test_without_an_engine_only_the_rules_are_told(staff, stored, settings):
    settings.SEMCACHE_ASKED_BY = "tests.semcache.lender.nobody"
    response = staff.get(PAGE, SAME)
    assert response.context["found"] is None
    assert response.context["explanation"].winner.name == "Everything"
    assert staff.get(JSON, {"text": "hello"}).json()["decision"] is None


def test_who_may_not_see_entries_sees_no_stored_question(client, stored):
    user = get_user_model().objects.create_user(username="rules", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="view_cacherule"))
    client.force_login(user)
    page, said = client.get(PAGE, OPPOSITE).content.decode(), client.get(JSON, OPPOSITE).content.decode()
    assert "switch on" not in page and "switch on" not in said
    assert "formaction" not in page
    assert client.get(JSON, OPPOSITE).json()["decision"]["candidates"][0]["objections"] == 2


def test_the_json_is_for_staff_with_the_permission(client):
    assert client.get(JSON, {"text": "a"}).status_code == 302
    client.force_login(get_user_model().objects.create_user(username="x", is_staff=True))
    assert client.get(JSON, {"text": "a"}).status_code == 403


def test_every_code_has_words():
    assert set(OUTCOMES) == set(Outcome)
    assert set(REASONS) >= set(Reason)
    assert set(CHECKS) >= set(GUARD_CHECKS)


def test_what_the_cache_would_not_compare_is_not_compared(staff):
    """The guard takes time with the square of a text's length, so that nothing long may reach it."""
    longest = {"text": "How long?", "stored": "x" * 500}
    assert staff.get(JSON, longest).json()["compared"]
    assert staff.get(JSON, longest | {"stored": "x" * 501}).status_code == 400
    assert staff.get(JSON, longest | {"text": "0" * 501}).json()["compared"] == []
