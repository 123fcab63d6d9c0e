"""Which quotas bind whom, how they stand, and what is said when one is used up."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.utils import timezone

from chatsite.accounts.callers import caller_of_key, caller_of_user
from chatsite.accounts.keys import create_key
from chatsite.accounts.models import Quota, QuotaHold, QuotaUse, User
from chatsite.accounts.quotas import settlement
from chatsite.accounts.quotas.admission import admit, one_at_a_time
from chatsite.accounts.quotas.refusals import QuotaExceeded
from chatsite.accounts.quotas.rules import in_force, window_start
from chatsite.accounts.quotas.standing import standings_of, tightest
from chatsite.chat.turn import Caller
from chatsite.errors import ReplyRefused

MakeUser = Callable[..., User]
DAY = 86_400
YEAR = 366 * DAY  # a window that does not end while a test runs


def quota(applies: str, window_s: int = YEAR, max_requests: int | None = None, **fields: Any) -> Quota:
    return Quota.objects.create(applies=applies, window_s=window_s, max_requests=max_requests, **fields)


def ask(caller: Caller, *tokens: int) -> list[UUID]:
    """Counts a request for each, which holds so many tokens."""
    held = {uuid4(): most for most in tokens or (0,)}
    admit(caller, list(held), held.__getitem__)
    return list(held)


@pytest.fixture
def ann(make_user: MakeUser) -> Caller:
    return caller_of_user(make_user("ann"))


def limits_of(caller: Caller) -> dict[tuple[str, int], int | None]:
    return {(limit.counts_for, limit.window_s): limit.max_requests for limit in in_force(caller)}


def test_ones_own_quota_comes_before_a_guests_and_that_before_everybodys(make_user: MakeUser) -> None:
    """For each length of window by itself: who is given more a day still has everybody's hour."""
    ann, bob = make_user("ann"), make_user("bob")
    guest = make_user("guest-x", is_guest=True, guest_until=timezone.now() + timedelta(days=1))
    key, _ = create_key(ann, "test", ["chat"])
    quota("each_user", DAY, 100)
    quota("each_user", 3600, 10)
    quota("each_guest", DAY, 5)
    quota("user", DAY, 1000, user=ann)
    quota("each_key", DAY, 50)
    quota("each_tenant", DAY, 9000)
    quota("tenant", DAY, 7000, tenant=ann.tenant)
    everybody = {("tenant", DAY): 7000, ("user", 3600): 10}
    assert limits_of(caller_of_user(ann)) == everybody | {("user", DAY): 1000}
    assert limits_of(caller_of_user(bob)) == everybody | {("user", DAY): 100}
    assert limits_of(caller_of_user(guest)) == everybody | {("user", DAY): 5}
    assert limits_of(caller_of_key(key)) == everybody | {("user", DAY): 1000, ("key", DAY): 50}
    quota("key", DAY, 60, api_key=key)
    assert limits_of(caller_of_key(key))["key", DAY] == 60


@pytest.mark.parametrize("window_s", [1, 7, 60, 3600, DAY, YEAR])
def test_windows_follow_each_other_from_the_epoch_on(window_s: int) -> None:
    now = datetime(2026, 3, 29, 1, 59, 59, 900_000, tzinfo=UTC)
    start = window_start(now, window_s)
    assert start.timestamp() % window_s == 0 and start <= now < start + timedelta(seconds=window_s)
    assert window_start(start, window_s) == start
    assert window_start(start - timedelta(microseconds=1), window_s) == start - timedelta(seconds=window_s)


def test_several_are_counted_together_or_not_at_all(ann: Caller) -> None:
    quota("each_user", max_requests=5)
    ask(ann, 0, 0, 0)
    with pytest.raises(QuotaExceeded):
        ask(ann, 0, 0, 0)
    (standing,) = standings_of(ann)
    assert (standing.requests, QuotaHold.objects.count()) == (3, 3)
    ask(ann, 0, 0)


def test_what_one_quota_refuses_is_counted_in_none(ann: Caller) -> None:
    quota("each_tenant", max_requests=1000)
    quota("each_user", max_requests=1)
    ask(ann)
    with pytest.raises(QuotaExceeded):
        ask(ann)
    assert {use.requests for use in QuotaUse.objects.all()} == {1}


def test_a_refusal_says_which_quota_whose_and_until_when(ann: Caller) -> None:
    quota("each_user", DAY, max_requests=1)
    quota("each_tenant", max_requests=1)
    ask(ann)
    with pytest.raises(QuotaExceeded) as caught:
        ask(ann)
    refusal = caught.value
    longest = next(one for one in standings_of(ann) if one.limit.window_s == YEAR)
    assert (refusal.code, refusal.status, refusal.is_retryable) == ("quota_exceeded", 429, True)
    assert refusal.resets_at == longest.resets_at, "the one that is in the way longest"
    assert refusal.retry_after_s is not None and refusal.retry_after_s > DAY
    for word in ("1 of 1 requests", "business line", f"{longest.resets_at:%Y-%m-%dT%H:%M:%SZ}"):
        assert word in refusal.message


def test_tokens_that_are_only_held_are_waited_for_briefly(ann: Caller) -> None:
    quota("each_user", max_tokens=100)
    (generation,) = ask(ann, 400)
    with pytest.raises(QuotaExceeded) as caught:
        ask(ann, 1)
    assert caught.value.retry_after_s == 2 and "held" in caught.value.message
    settlement.settle(generation, 40)
    assert [(one.tokens, one.held, one.tokens_left) for one in standings_of(ann)] == [(40, 0, 60)]
    ask(ann, 70)


def test_who_has_anything_left_may_ask_once_more_and_then_waits_for_the_window(ann: Caller) -> None:
    quota("each_user", max_tokens=100)
    (generation,) = ask(ann, 500)
    settlement.settle(generation, 130)
    with pytest.raises(QuotaExceeded) as caught:
        ask(ann, 0)
    assert caught.value.retry_after_s is not None and caught.value.retry_after_s > 60


def test_a_quota_of_nothing_lets_nothing_in(ann: Caller) -> None:
    quota("user", max_requests=0, user_id=ann.user_id)
    with pytest.raises(QuotaExceeded):
        ask(ann)
    assert standings_of(ann)[0].is_warning


def test_the_warning_comes_at_eighty_percent(ann: Caller) -> None:
    quota("each_user", max_requests=10, max_tokens=1000)
    warned = []
    for _ in range(10):
        (generation,) = ask(ann, 900)
        settlement.settle(generation, 30)
        warned.append(standings_of(ann)[0].is_warning)
    assert warned == [False] * 7 + [True] * 3
    QuotaUse.objects.update(requests=0, tokens=800)
    assert standings_of(ann)[0].is_warning


def test_the_tightest_quota_is_the_one_of_which_least_is_left(ann: Caller) -> None:
    quota("each_user", DAY, max_requests=10)
    quota("each_tenant", DAY, max_requests=4, max_tokens=50)
    standings = standings_of(ann)
    tight = tightest(standings, "requests")
    assert tight is not None and tight.limit.max_requests == 4
    tokens = tightest(standings, "tokens")
    assert tokens is not None and tokens.limit.max_tokens == 50
    assert tightest([one for one in standings if one.limit.max_tokens is None], "tokens") is None


def test_an_end_is_settled_once_and_a_refused_one_costs_nothing(ann: Caller) -> None:
    quota("each_user", max_requests=10, max_tokens=1000)
    used, refused = ask(ann, 100, 100)
    settlement.give_back(refused)
    for _ in range(2):
        settlement.settle(used, 60)
        settlement.give_back(refused)
        settlement.give_back(used)
        settlement.settle(refused, 60)
    assert [(one.requests, one.tokens, one.held) for one in standings_of(ann)] == [(1, 60, 0)]
    assert not QuotaHold.objects.exists()


def test_a_window_that_ended_meanwhile_is_settled_where_it_was_held(ann: Caller) -> None:
    quota("each_user", DAY, max_tokens=1000)
    (generation,) = ask(ann, 100)
    yesterday = timedelta(days=1)
    QuotaUse.objects.update(window_start=window_start(timezone.now(), DAY) - yesterday)
    ask(ann, 50)
    settlement.settle(generation, 70)
    counted = QuotaUse.objects.order_by("window_start").values_list("tokens", "reserved_tokens")
    assert list(counted) == [(70, 0), (0, 50)]


def test_a_quota_that_is_made_while_an_answer_is_is_not_charged_for_it(ann: Caller) -> None:
    (generation,) = ask(ann, 100)
    quota("each_user", max_tokens=1000)
    settlement.settle(generation, 70)
    ask(ann, 10)
    assert [(one.tokens, one.held) for one in standings_of(ann)] == [(0, 10)]


def test_what_nobody_settles_is_charged_in_full(ann: Caller) -> None:
    quota("each_user", max_tokens=1000)
    ask(ann, 100)
    assert settlement.settle_expired() == 0
    QuotaHold.objects.update(expires_at=timezone.now())
    assert settlement.settle_expired() == 1 and settlement.settle_expired() == 0
    assert [(one.tokens, one.held) for one in standings_of(ann)] == [(100, 0)]


def test_counters_of_windows_that_are_over_are_deleted(ann: Caller) -> None:
    quota("each_user", 60, max_requests=10)
    quota("each_user", YEAR, max_requests=10)
    ask(ann)
    QuotaUse.objects.update(window_start=timezone.now() - timedelta(hours=2))
    assert settlement.forget_old() == 1
    assert QuotaUse.objects.get().window_s == YEAR


def test_where_no_quota_is_in_force_nothing_is_counted(ann: Caller, django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(1):
        ask(ann)
    assert not QuotaUse.objects.exists() and not QuotaHold.objects.exists()


def test_an_admission_asks_a_bounded_number_of_queries(ann: Caller, django_assert_num_queries: Any) -> None:
    quota("each_user", max_requests=10, max_tokens=1000)
    quota("each_tenant", max_requests=10, max_tokens=1000)
    ask(ann, 1)
    with django_assert_num_queries(5):
        ask(ann, 1)


def test_who_is_gone_may_not_ask(db: None) -> None:
    with pytest.raises(ReplyRefused) as caught:
        one_at_a_time(0)
    assert caught.value.status == 401
