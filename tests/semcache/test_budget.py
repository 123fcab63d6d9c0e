"""The budget of wrong answers: what counts as evidence, and a rule that tightens itself once it is past its limit."""

from __future__ import annotations

import logging
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth import authenticate
from django.core.exceptions import ValidationError
from django.db import connection, transaction
from django.utils import timezone

from semcache import tasks
from semcache.admin import audit as admin_audit
from semcache.models import CacheCheck, CacheRule, CacheRuleHour
from semcache.quality import budget
from tests.semcache import factories

pytestmark = pytest.mark.django_db
SAMPLED, THUMB, STAFF = CacheCheck.Kind.values


def sampled(rule: CacheRule, num: int, num_wrong: int = 0, **values) -> None:
    for number in range(num):
        budget.record(rule.pk, SAMPLED, number < num_wrong, generation=uuid4(), **values)


def served(rule: CacheRule, num: int, hours_ago: int = 0) -> None:
    hour = timezone.now().replace(minute=0, second=0, microsecond=0) - timedelta(hours=hours_ago)
    CacheRuleHour.objects.create(rule=rule, hour=hour, looks=num, semantic_hits=num)


def state(rule: CacheRule) -> str:
    rule.refresh_from_db()
    return rule.tightened


def held_against(rule: CacheRule) -> tuple[tuple[int, int], tuple[int, int]]:
    """(wrong, number) of the sampled and of the reported ones."""
    found = budget.evidence([rule.pk])[rule.pk]
    return (found.sampled.num_wrong, found.sampled.num), (found.reported.num_wrong, found.reported.num)


def test_a_rule_past_its_limit_tightens_in_two_steps_and_stays_there():
    rule = factories.rule()
    sampled(rule, 3, 1)
    assert state(rule) == ""
    sampled(rule, 1, 1)
    assert state(rule) == "verify"
    assert held_against(rule) == ((0, 0), (0, 0)), "what led to this step led to the next one, too"
    sampled(rule, 3, 3)
    assert state(rule) == "exact"
    sampled(rule, 5, 5)
    assert state(rule) == "exact"


@pytest.mark.parametrize(
    "changes", [{"wrong_share": 1.0}, {"mode": "shadow"}, {"mode": "exact"}, {"wrong_share": 0.5}]
)
def test_a_rule_that_may_be_so_wrong_or_serves_nothing_by_meaning_does_not_tighten(changes):
    rule = factories.rule(**changes)
    sampled(rule, 4, 4)
    sampled(rule, 4)
    assert state(rule) == ""


def test_a_rule_that_may_never_be_wrong_tightens_at_the_first_wrong_one_and_not_before():
    rule = factories.rule(wrong_share=0.0)
    sampled(rule, 30)
    assert state(rule) == ""
    sampled(rule, 1, 1)
    assert state(rule) == "verify"


def test_what_people_say_counts_against_everything_that_was_served_meanwhile():
    rule, busy = factories.rule(), factories.rule()
    served(rule, 20)
    served(busy, 5000)
    for _ in range(4):
        budget.record(rule.pk, THUMB, True, generation=uuid4())
        budget.record(busy.pk, THUMB, True, generation=uuid4())
    assert (state(rule), state(busy)) == ("verify", "")
    assert held_against(busy) == ((0, 0), (4, 5000))
    budget.record(busy.pk, THUMB, False, generation=uuid4())
    assert held_against(busy) == ((0, 0), (4, 5000)), "praise is no sample of what is right"


def test_marks_of_staff_count_as_thumbs_do():
    rule = factories.rule()
    served(rule, 20)
    for entry in range(4):
        budget.record(rule.pk, STAFF, True, entry=entry)
    assert state(rule) == "verify"


def test_one_served_answer_is_judged_once_however_often_that_is_delivered():
    rule, generation = factories.rule(), uuid4()
    for _ in range(5):
        budget.record(rule.pk, SAMPLED, True, generation=generation, similarity=0.97)
    assert (CacheCheck.objects.count(), held_against(rule)[0], state(rule)) == (1, (1, 1), "")


@pytest.mark.parametrize("order", [(SAMPLED, THUMB), (THUMB, SAMPLED)])
@pytest.mark.parametrize(("compared", "said"), [(True, False), (False, True), (True, True), (False, False)])
def test_an_answer_that_was_compared_and_rated_is_in_the_sample_and_wrong_when_either_says_so(
    order, compared, said
):
    rule, generation = factories.rule(), uuid4()
    verdicts = {SAMPLED: compared, THUMB: said}
    for kind in (*order, *order):
        budget.record(rule.pk, kind, verdicts[kind], generation=generation)
    assert held_against(rule) == ((int(compared or said), 1), (0, 0))


def test_a_thumb_that_was_turned_counts_as_it_stands_last():
    rule, generation = factories.rule(), uuid4()
    served(rule, 100)
    for is_wrong in (True, False, True, False):
        budget.record(rule.pk, THUMB, is_wrong, generation=generation)
    assert held_against(rule) == ((0, 0), (0, 100))


def test_only_this_weeks_evidence_counts_and_only_the_rules_own():
    rule, other = factories.rule(), factories.rule()
    sampled(rule, 2, 2, served_at=timezone.now() - timedelta(days=8))
    served(rule, 50, hours_ago=24 * 8)
    sampled(rule, 1, served_at=timezone.now() - timedelta(days=6))
    sampled(other, 1, 1)
    assert held_against(rule) == ((0, 1), (0, 0))
    assert state(rule) == ""


def test_what_was_served_before_the_rule_tightened_does_not_tighten_it_further():
    rule, before = factories.rule(), timezone.now()
    sampled(rule, 2, 2)
    assert state(rule) == "verify"
    sampled(rule, 10, 10, served_at=before)  # comparisons that were under way
    assert state(rule) == "verify"


def test_staff_loosens_and_earlier_evidence_no_longer_counts():
    rule = factories.rule()
    sampled(rule, 4, 4)
    assert budget.loosen(rule.pk)
    assert (state(rule), held_against(rule)) == ("", ((0, 0), (0, 0)))
    sampled(rule, 1, 1)
    assert state(rule) == ""
    assert not budget.loosen(rule.pk), "there was nothing to take back"


def test_a_tightened_rule_says_so_in_the_log_and_in_the_admins_log(caplog):
    rule = factories.rule(name="weather")
    with caplog.at_level(logging.WARNING):
        sampled(rule, 2, 2)
    assert "weather" in caplog.text and "tightened itself" in caplog.text and "2/2" in caplog.text
    line = LogEntry.objects.get()
    assert (line.object_id, line.content_type.model) == (str(rule.pk), "cacherule")
    assert line.change_message.startswith("tightened: no -> verify; wrong of those checked 2/2")


def test_what_the_cache_does_by_itself_is_signed_by_an_account_that_nobody_can_enter():
    rule = factories.rule()
    sampled(rule, 6, 6)
    (author,) = {line.user for line in LogEntry.objects.all()}
    assert not author.is_active and not author.has_usable_password() and not author.is_staff
    assert authenticate(username=author.username, password="") is None
    with pytest.raises(ValidationError):
        author.full_clean(exclude=["password"])  # so no form gives it to anybody


def test_a_rule_that_is_gone_is_told_nothing():
    budget.record(999_999, SAMPLED, True, generation=UUID(int=1))
    assert CacheCheck.objects.count() == 0


def test_checks_are_forgotten_after_a_quarter_in_batches():
    rule, now = factories.rule(), timezone.now()
    sampled(rule, 5, served_at=now - timedelta(days=91))
    sampled(rule, 1, served_at=now - timedelta(days=89))
    assert [budget.delete_old_checks(batch=3) for _ in range(3)] == [3, 2, 0]
    assert CacheCheck.objects.count() == 1
    sampled(rule, 2, served_at=now - timedelta(days=91))
    assert tasks.delete_old_checks() == 2


def test_calm_is_a_row_of_right_checks_and_one_wrong_one_ends_it():
    rule = factories.rule(wrong_share=0.5)
    sampled(rule, budget.CALM_AFTER - 1)
    assert budget.calm_rules() == frozenset(), "nobody has seen enough of it yet"
    sampled(rule, 1)
    assert budget.calm_rules() == {rule.pk}
    sampled(rule, 1, 1)
    assert budget.calm_rules() == frozenset()
    sampled(rule, budget.CALM_AFTER)
    assert budget.calm_rules() == {rule.pk}


@pytest.mark.parametrize(("share", "now"), [(0.0, 0.0), (0.02, 0.1), (0.5, 1.0)])
def test_a_rule_that_is_watched_is_checked_more_often_up_to_always(share, now):
    assert budget.share_checked(share, is_calm=False) == pytest.approx(now)
    assert budget.share_checked(share, is_calm=True) == share


def somebody_waits() -> bool:
    """Whether a statement in this database waits for a row that another one holds."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return bool(cursor.fetchone()[0])


def test_of_two_checks_that_are_both_needed_one_sees_the_other(committed, monkeypatch):
    """Without the lock on the rule the second worker would count before the first one's check is there."""
    monkeypatch.setattr(admin_audit, "note_by_itself", lambda rule, said: None)  # its author would stay
    rule = factories.rule()

    def check() -> None:
        try:
            budget.record(rule.pk, SAMPLED, True, generation=uuid4())
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as worker:
        with transaction.atomic():
            budget.record(rule.pk, SAMPLED, True, generation=uuid4())
            second = worker.submit(check)
            while not (second.done() or somebody_waits()):
                time.sleep(0.01)
        second.result()
    assert state(rule) == "verify"


def a_history() -> tuple[tuple[int, int], tuple[int, int]]:
    """What is held against a rule that was loosened, with evidence of every kind, old and new, and a neighbour's."""
    rule, other, now = factories.rule(wrong_share=1.0), factories.rule(wrong_share=1.0), timezone.now()
    CacheRule.objects.filter(pk=rule.pk).update(tightened_at=now - timedelta(days=2))
    for kind, days in ((SAMPLED, 8), (SAMPLED, 3), (SAMPLED, 1), (THUMB, 3), (THUMB, 1), (STAFF, 1)):
        budget.record(rule.pk, kind, True, generation=uuid4(), served_at=now - timedelta(days=days))
        budget.record(other.pk, kind, True, generation=uuid4(), served_at=now - timedelta(days=days))
    sampled(rule, 4)
    budget.record(rule.pk, THUMB, False, generation=uuid4())
    served(rule, 1000)
    served(rule, 1000, hours_ago=72)
    return held_against(rule)


EXPECTED = ((1, 5), (2, 1000))


def test_what_is_held_against_a_rule_is_its_own_recent_and_by_kind():
    assert a_history() == EXPECTED


@pytest.mark.parametrize(
    ("forgotten", "instead"),
    [
        (", rule.tightened_at", ", NULL"),
        ("interval '7 days'", "interval '7 years'"),
        ("one.rule_id = rule.id AND", ""),
        ("one.kind = 'sampled' AND one.is_wrong", "one.kind = 'sampled' AND NOT one.is_wrong"),
        ("one.kind <> 'sampled' AND one.is_wrong", "one.kind <> 'sampled'"),
        ("hour.rule_id = rule.id AND", "false AND"),
        ("FILTER (WHERE one.kind = 'sampled') AS", "AS"),
    ],
    ids=["loosening", "week", "rule", "which are wrong", "praise", "hits", "kind"],
)
def test_evidence_that_forgot_something_would_be_noticed(monkeypatch, forgotten, instead):
    text = budget._EVIDENCE.replace(forgotten, instead)
    assert text != budget._EVIDENCE
    monkeypatch.setattr(budget, "_EVIDENCE", text)
    if forgotten == "interval '7 days'":
        rule = factories.rule(wrong_share=1.0)
        sampled(rule, 1, 1, served_at=timezone.now() - timedelta(days=8))
        assert held_against(rule)[0] == (1, 1)
    else:
        assert a_history() != EXPECTED
