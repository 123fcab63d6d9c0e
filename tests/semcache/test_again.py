"""Places for what is made again: few, one for each thing, one worker in each, and free when their time is up."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from uuid import UUID, uuid4

import pytest
from django.utils import timezone

from semcache import again
from semcache.models import CacheFlight
from tests.semcache.test_concurrent_eviction import at_once

NUM, AT_MOST = 8, 3


@pytest.fixture(autouse=True)
def no_places(committed) -> Iterator[None]:
    CacheFlight.objects.all().delete()
    yield
    CacheFlight.objects.all().delete()


def reserved(*whats: str) -> list[bool]:
    return at_once(*(partial(again.reserve, what, uuid4(), 60.0, AT_MOST) for what in whats))


def claimed(run: UUID) -> list[bool]:
    return at_once(*[partial(again.claim, run, 60.0)] * NUM)


def test_of_many_at_once_as_many_get_a_place_as_there_are():
    assert reserved(*map(str, range(NUM))).count(True) == AT_MOST


def test_one_thing_has_one_place():
    assert reserved(*["the same"] * NUM).count(True) == 1


def test_one_of_many_workers_makes_it():
    run = uuid4()
    assert again.reserve("it", run, 60.0, AT_MOST)
    assert claimed(run).count(True) == 1
    again.release(run)
    assert not again.claim(run, 60.0)
    assert again.reserve("it", uuid4(), 60.0, AT_MOST)


def test_a_place_whose_time_is_up_is_free_and_nobodys():
    late = uuid4()
    assert again.reserve("it", late, 60.0, AT_MOST)
    CacheFlight.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert not again.claim(late, 60.0)
    assert again.reserve("it", uuid4(), 60.0, 1)


@pytest.mark.parametrize(
    ("part", "instead", "whats", "at_most"),
    [
        ("< %(at_most)s", "< 1000", [str(number) for number in range(NUM)], AT_MOST),
        ("%(what)s, %(run)s", "%(run)s::text, %(run)s", ["the same"] * NUM, 1),
    ],
)
def test_a_place_that_forgot_what_is_taken_would_be_noticed(monkeypatch, part, instead, whats, at_most):
    monkeypatch.setattr(again, "RESERVE", again.RESERVE.replace(part, instead))
    assert reserved(*whats).count(True) > at_most


def test_a_claim_that_forgot_the_others_would_be_noticed(monkeypatch):
    monkeypatch.setattr(again, "CLAIM", again.CLAIM.replace("AND NOT is_up", ""))
    run = uuid4()
    assert again.reserve("it", run, 60.0, AT_MOST)
    assert claimed(run).count(True) == NUM
