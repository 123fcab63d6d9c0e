"""How long somebody stays signed in, and what ends it (S15)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.conf import settings
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone

from chatsite.accounts import sessions
from chatsite.accounts.models import User
from chatsite.accounts.sessions import IDLE, LONGEST, SessionStore
from chatsite.accounts.tasks import forget_sessions
from chatsite.chat.session import user_of_session
from tests.accounts.conftest import PASSWORD

MakeUser = Callable[..., User]


class Clock:
    def __init__(self) -> None:
        self.now = timezone.now()

    def __call__(self) -> datetime:
        return self.now

    def pass_by(self, **duration: float) -> None:
        self.now += timedelta(**duration)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("django.utils.timezone.now", clock)
    return clock


def is_in(client: Client) -> bool:
    return user_of_session(client.cookies[settings.SESSION_COOKIE_NAME].value, renews=False) is not None


def use(client: Client) -> None:
    client.get("/signin")


def test_a_session_ends_after_twelve_idle_hours(client: Client, make_user: MakeUser, clock: Clock) -> None:
    client.force_login(make_user())
    for _ in range(3):
        clock.pass_by(hours=11.9)
        assert is_in(client)
        use(client)
    clock.pass_by(hours=12, seconds=1)
    assert not is_in(client)
    use(client)
    assert not is_in(client), "what has ended is not renewed"


def test_a_heartbeat_is_no_sign_of_life(client: Client, make_user: MakeUser, clock: Clock) -> None:
    client.force_login(make_user())
    for _ in range(13):
        clock.pass_by(hours=1)
        is_in(client)
    assert not is_in(client)


def test_a_session_ends_after_fourteen_days_of_use(client: Client, make_user: MakeUser, clock: Clock) -> None:
    client.force_login(make_user())
    for _ in range(28):
        clock.pass_by(hours=11.99)
        use(client)
    assert is_in(client)
    clock.pass_by(hours=0.3)
    use(client)
    assert not is_in(client)
    assert timedelta(seconds=settings.SESSION_COOKIE_AGE) == LONGEST


def test_signing_in_again_begins_anew(client: Client, make_user: MakeUser, clock: Clock) -> None:
    make_user("ann")
    client.force_login(User.objects.get())
    clock.pass_by(hours=11)
    client.post("/signin", {"username": "ann", "password": PASSWORD})
    clock.pass_by(hours=11)
    assert is_in(client)


def test_a_session_is_written_at_most_every_ten_minutes(
    client: Client, make_user: MakeUser, clock: Clock
) -> None:
    client.force_login(make_user())
    ends = []
    for _ in range(4):
        clock.pass_by(minutes=4)
        use(client)
        ends.append(Session.objects.get().expire_date)
    assert ends[0] == ends[1] < ends[2] == ends[3]
    assert ends[2] == clock.now - timedelta(minutes=4) + IDLE


def test_a_guest_stays_as_long_as_the_account(
    client: Client, db: None, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataclasses import replace

    monkeypatch.setattr(settings, "CONFIG", replace(settings.CONFIG, guests=True))
    client.post("/guest")
    clock.pass_by(days=6.9)
    assert is_in(client)
    use(client)
    clock.pass_by(days=0.2)
    assert not is_in(client)


@pytest.mark.parametrize("by", ["oneself", "staff", "taking the password away"])
def test_a_new_password_closes_all_sessions(client: Client, make_user: MakeUser, by: str) -> None:
    ann = make_user("ann")
    clients = [Client(), Client()]
    for one in clients:
        one.post("/signin", {"username": "ann", "password": PASSWORD})
    assert all(is_in(one) for one in clients)
    new = {"password1": "another long phrase", "password2": "another long phrase", "usable_password": "true"}
    if by == "staff":
        client.force_login(User.objects.create_superuser("root", password="x"))
        assert client.post(f"/admin/accounts/user/{ann.pk}/password/", new).status_code == 302
    else:
        ann.set_password("another long phrase") if by == "oneself" else ann.set_unusable_password()
        ann.save()
    assert not any(is_in(one) for one in clients)


def test_sessions_that_are_over_are_deleted(client: Client, make_user: MakeUser, clock: Clock) -> None:
    client.force_login(make_user("ann"))
    over = client.session.session_key
    clock.pass_by(hours=13)
    client.force_login(User.objects.get())
    forget_sessions()
    assert (
        set(Session.objects.values_list("session_key", flat=True)) == {client.session.session_key} != {over}
    )


def test_the_store_reads_what_django_wrote_before(make_user: MakeUser) -> None:
    """Sessions from before an update go on to the end that they had."""
    from django.contrib.sessions.backends.db import SessionStore as Plain

    plain = Plain()
    plain["kept"] = 1
    plain.save()
    assert SessionStore(plain.session_key)["kept"] == 1
    Session.objects.update(expire_date=timezone.now() + timedelta(hours=1))
    assert SessionStore(plain.session_key)["kept"] == 1
    assert Session.objects.get().expire_date < timezone.now() + timedelta(hours=2)


@pytest.mark.parametrize(
    ("mutant", "constant"),
    [("never idle", "IDLE"), ("never over", "LONGEST"), ("never written", "RENEWED_EVERY")],
)
def test_each_limit_counts(
    client: Client,
    make_user: MakeUser,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
    mutant: str,
    constant: str,
) -> None:
    """The tests above fail when one of the limits is gone."""
    tests: dict[str, Any] = {
        "IDLE": lambda: test_a_session_ends_after_twelve_idle_hours(client, make_user, clock),
        "LONGEST": lambda: test_a_session_ends_after_fourteen_days_of_use(client, make_user, clock),
        "RENEWED_EVERY": lambda: test_a_session_is_written_at_most_every_ten_minutes(
            client, make_user, clock
        ),
    }
    limits = {
        "IDLE": timedelta(days=400),
        "LONGEST": timedelta(days=400),
        "RENEWED_EVERY": timedelta(hours=11),
    }
    monkeypatch.setattr(sessions, constant, limits[constant])
    with pytest.raises(AssertionError):
        tests[constant]()
