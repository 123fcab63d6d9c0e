"""Many threads ask and end at once: no quota lets more through than it says, and the counters agree with the ledger.

Each mutant leaves out one lock or one check, and the same run must then find what slipped past.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from threading import Barrier
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.conf import settings as site
from django.db import IntegrityError, connection, transaction
from django.db.models import F
from django.db.models.functions import Now
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chatsite import statements
from chatsite.accounts.models import Quota, QuotaHold, QuotaUse, Tenant, UsageRecord, User
from chatsite.accounts.quotas import admission, settlement
from chatsite.accounts.quotas.refusals import QuotaExceeded
from chatsite.accounts.quotas.standing import standings_of
from chatsite.chat.models import Generation
from chatsite.chat.turn import Caller
from chatsite.errors import ReplyRefused
from tests.patience import PATIENCE_S

NUM_THREADS = 6
YEAR = 366 * 86_400
MOST, LARGEST = 100, 200  # tokens that one answer holds at most, and all of one request

pytestmark = pytest.mark.django_db(transaction=True)


@dataclass(frozen=True, slots=True)
class Step:
    """One request for `holds` answers by user `who`, and how they end, having used a part of what they held."""

    who: int
    holds: tuple[int, ...]
    uses: float
    end: str  # settled, twice, given back, left


@dataclass(frozen=True, slots=True)
class Limits:
    tenant_requests: int
    tenant_tokens: int
    user_requests: int
    user_tokens: int


steps = st.builds(
    Step,
    who=st.integers(0, 1),
    holds=st.lists(st.integers(0, MOST), min_size=1, max_size=2).map(tuple),
    uses=st.floats(0, 1),
    end=st.sampled_from(["settled", "settled", "twice", "given back", "left"]),
)
limits = st.builds(
    Limits,
    tenant_requests=st.integers(1, 30),
    tenant_tokens=st.integers(1, 900),
    user_requests=st.integers(1, 20),
    user_tokens=st.integers(1, 600),
)


@pytest.fixture
def users() -> list[User]:
    tenant, _ = Tenant.objects.get_or_create(is_default=True, defaults={"slug": "default", "name": "Default"})
    return [User.objects.create_user(name, tenant=tenant) for name in ("ann", "bob")]


def run(users: Sequence[User], bound: Limits, work: Sequence[Step]) -> list[str]:
    """Does all of `work` on threads; what is wrong afterwards."""
    for model in (Quota, QuotaUse, QuotaHold, UsageRecord, Generation):
        model.objects.all().delete()
    applies = [("each_tenant", bound.tenant_requests, bound.tenant_tokens)]
    applies += [("each_user", bound.user_requests, bound.user_tokens)]
    for whose, requests, tokens in applies:
        Quota.objects.create(applies=whose, window_s=YEAR, max_requests=requests, max_tokens=tokens)
    callers = [Caller(user.pk, str(user.tenant_id)) for user in users]
    shares = [work[first::NUM_THREADS] for first in range(NUM_THREADS)]
    done = at_once([partial(take_all, callers, share) for share in shares])
    found = [wrong for one in done for wrong in one] + wrong_in(callers)
    return found + [wrong for caller in callers for wrong in past_limits(caller)]


def take_all(callers: Sequence[Caller], share: Sequence[Step]) -> list[str]:
    return [wrong for step in share for wrong in take(callers[step.who], step)]


def take(caller: Caller, step: Step) -> list[str]:
    held = {uuid4(): tokens for tokens in step.holds}
    try:
        with transaction.atomic():
            admission.admit(caller, list(held), held.__getitem__)
        wrong = past_limits(caller)
        for generation, tokens in held.items():
            end(caller, generation, round(tokens * step.uses), step.end)
    except QuotaExceeded as refusal:
        assert refusal.resets_at > timezone.now()
        return []
    except IntegrityError as error:  # a counter below zero
        return [str(error)]
    return wrong


def past_limits(caller: Caller) -> list[str]:
    """Quotas of which more is gone than they say; of tokens the last request may take what its answers hold."""
    return [
        f"{one} is past its limit"
        for one in standings_of(caller)
        if one.requests > (one.limit.max_requests or 0)
        or one.tokens + one.held >= (one.limit.max_tokens or 0) + LARGEST
    ]


def end(caller: Caller, generation: UUID, used: int, how: str) -> None:
    match how:
        case "settled":
            settle(caller, generation, used)
        case "twice":
            at_once([lambda: settle(caller, generation, used)] * 2)
        case "given back":
            at_once([transaction.atomic(partial(settlement.give_back, generation))] * 2)
        case "left":
            held = QuotaHold.objects.get(pk=generation).tokens
            QuotaHold.objects.filter(pk=generation).update(expires_at=timezone.now())
            settlement.settle_expired()
            book(caller, generation, held)


@transaction.atomic
def settle(caller: Caller, generation: UUID, used: int) -> None:
    book(caller, generation, used)
    settlement.settle(generation, 0)


def book(caller: Caller, generation: UUID, used: int) -> None:
    row = UsageRecord(
        generation=generation,
        user_id=caller.user_id,
        tenant_id=int(caller.tenant),
        prompt_tokens=used // 2,
        generated_tokens=used - used // 2,
    )
    UsageRecord.objects.bulk_create([row], ignore_conflicts=True)


def wrong_in(callers: Sequence[Caller]) -> list[str]:
    """Everything has ended: nothing is held, and what was counted is what the ledger has."""
    wrong = [f"{use} holds {use.reserved_tokens}" for use in QuotaUse.objects.exclude(reserved_tokens=0)]
    wrong += [f"{hold} was not settled" for hold in QuotaHold.objects.all()]
    for use in QuotaUse.objects.all():
        kind, _, number = use.subject.partition(":")
        rows = UsageRecord.objects.filter(**{f"{kind}_id": int(number)})
        tokens = sum(rows.values_list(F("prompt_tokens") + F("generated_tokens"), flat=True))
        if (use.requests, use.tokens) != (rows.count(), tokens):
            wrong.append(f"{use}: {use.requests}, {use.tokens} counted, {rows.count()}, {tokens} booked")
    return wrong


def at_once(work: Sequence[Callable[[], Any]]) -> list[Any]:
    """All of it, begun at the same moment, each on a connection of its own."""
    connection.close()  # there are few; whoever waits for others needs none
    start = Barrier(len(work))

    def begin(one: Callable[[], Any]) -> Any:
        start.wait(timeout=PATIENCE_S)
        try:
            return one()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(work)) as threads:
        return list(threads.map(begin, work))


@settings(
    max_examples=12,
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
    ],
)
@given(bound=limits, work=st.lists(steps, min_size=NUM_THREADS, max_size=24))
def test_whatever_is_asked_at_once_no_quota_is_slipped_past(
    users: list[User], bound: Limits, work: list[Step]
) -> None:
    assert run(users, bound, work) == []


# --- mutants

HOSTILE = [Step(0, (MOST, MOST), 0.5, "settled") for _ in range(6)] + [
    Step(1, (MOST,), 1.0, "given back") for _ in range(6)
]
NARROW = Limits(tenant_requests=5, tenant_tokens=900, user_requests=3, user_tokens=600)
FEW_TOKENS = Limits(tenant_requests=90, tenant_tokens=900, user_requests=90, user_tokens=150)


def allow_live(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(site, "CONFIG", replace(site.CONFIG, max_live_per_user=most))


def slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the look and the act there is time for everybody else: what is not locked goes wrong."""
    for owner, name in ((admission, "_count"), (admission, "admit")):
        monkeypatch.setattr(owner, name, _after_a_pause(getattr(owner, name)))


def _after_a_pause(act: Callable[..., Any]) -> Callable[..., Any]:
    def paused(*args: Any, **kwargs: Any) -> Any:
        time.sleep(0.03)
        return act(*args, **kwargs)

    return paused


def without_locks_of_counters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "LOCK", admission.LOCK.replace("FOR UPDATE OF known", ""))


def looking_before_taking(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two at a time both see the hold before it goes."""
    seen = "SELECT uses, tokens, pg_sleep(0.03) FROM accounts_quotahold WHERE generation = %(generation)s"
    gone = "DELETE FROM accounts_quotahold WHERE generation = %(generation)s"
    take = f"WITH seen AS MATERIALIZED ({seen}), gone AS ({gone}) SELECT uses, tokens FROM seen"
    monkeypatch.setattr(settlement, "TAKE_HOLD", take)
    really = statements.first
    monkeypatch.setattr(
        statements,
        "first",
        lambda sql, given: really(sql, {"generation": given[0]} if sql == take else given),
    )


def counting_one(monkeypatch: pytest.MonkeyPatch) -> None:
    really = QuotaExceeded.of
    monkeypatch.setattr(QuotaExceeded, "of", lambda standings, num_requests: really(standings, 1))


def keeping_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        settlement, "TAKE_HOLD", "SELECT uses, tokens FROM accounts_quotahold WHERE generation = %s"
    )


def holding_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    really = admission._count
    monkeypatch.setattr(admission, "_count", lambda uses, held: really(uses, dict.fromkeys(held, 0)))


def live_beside(users: Sequence[User]) -> int:
    """How many answers of one user come to be in the making when six ask at once."""
    caller = Caller(users[0].pk, str(users[0].tenant_id))

    @transaction.atomic
    def ask() -> None:
        admission.one_at_a_time(caller.user_id)
        row = Generation.objects.create(user_id=caller.user_id, deadline_at=Now() + timedelta(hours=1))
        admission.admit_answers(caller, [row.pk], lambda _: 0)

    def refused() -> bool:
        try:
            ask()
        except ReplyRefused as refusal:
            return refusal.code == "rate_limited"
        return False

    at_once([refused] * NUM_THREADS)
    return Generation.objects.count()


def test_the_hostile_runs_find_nothing_wrong(users: list[User], monkeypatch: pytest.MonkeyPatch) -> None:
    allow_live(monkeypatch, 2)
    slowly(monkeypatch)
    assert run(users, NARROW, HOSTILE) + run(users, FEW_TOKENS, HOSTILE) == []


def test_no_more_than_the_allowed_are_made_at_once(
    users: list[User], monkeypatch: pytest.MonkeyPatch
) -> None:
    allow_live(monkeypatch, 2)
    slowly(monkeypatch)
    assert live_beside(users) == 2


@pytest.mark.parametrize(
    ("mutant", "bound"),
    [
        (without_locks_of_counters, NARROW),
        (looking_before_taking, FEW_TOKENS),
        (counting_one, NARROW),
        (keeping_holds, NARROW),
        (holding_nothing, FEW_TOKENS),
    ],
    ids=["counters not locked", "holds not locked", "several count as one", "holds stay", "nothing is held"],
)
def test_a_mutant_lets_something_slip_past(
    users: list[User], monkeypatch: pytest.MonkeyPatch, mutant: Callable[..., None], bound: Limits
) -> None:
    mutant(monkeypatch)
    slowly(monkeypatch)
    assert run(users, bound, HOSTILE)


def test_without_the_users_lock_too_many_answers_are_made_at_once(
    users: list[User], monkeypatch: pytest.MonkeyPatch
) -> None:
    allow_live(monkeypatch, 2)
    monkeypatch.setattr(admission, "HOLD_USER", admission.HOLD_USER.replace(" FOR NO KEY UPDATE", ""))
    slowly(monkeypatch)
    assert live_beside(users) > 2
