"""Sign in, sign up, guests and sign out, as a browser without scripts sees them."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone

from chatsite.accounts import brake
from chatsite.accounts.callers import is_welcome
from chatsite.accounts.guests import expired_guests
from chatsite.accounts.models import SignInFailures, Tenant, User
from chatsite.accounts.views import GUEST
from tests.accounts.conftest import PASSWORD

MakeUser = Callable[..., User]
NEW = {"username": "newcomer", "password1": PASSWORD, "password2": PASSWORD}


@pytest.fixture
def guests_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    allow(monkeypatch, guests=True)


def allow(monkeypatch: pytest.MonkeyPatch, **changes: object) -> None:
    from dataclasses import replace

    monkeypatch.setattr(settings, "CONFIG", replace(settings.CONFIG, **changes))


def is_signed_in(client: Client) -> bool:
    return "_auth_user_id" in client.session


def test_users_get_the_default_business_line(make_user: MakeUser) -> None:
    assert make_user().tenant == Tenant.objects.default()
    assert User.objects.create_superuser("root", password=PASSWORD).tenant == Tenant.objects.default()


def test_the_right_password_signs_in_and_goes_on(client: Client, make_user: MakeUser) -> None:
    make_user("ann")
    response = client.post("/signin", {"username": "ann", "password": PASSWORD, "next": "/c/x"})
    assert (response.status_code, response["location"]) == (302, "/c/x")
    assert is_signed_in(client)


def test_what_is_wrong_with_a_new_password_stands_where_it_is_chosen(client: Client, db: None) -> None:
    response = client.post("/signup", NEW | {"password1": "12345", "password2": "12345"})
    errors = response.context["form"].errors
    assert "too short" in str(errors["password1"]) and "password2" not in errors


@pytest.mark.parametrize(
    ("wrong", "focused"),
    [
        ({}, "username"),
        ({"username": "guest-x"}, "username"),
        ({"password1": "12345", "password2": "12345"}, "password1"),
        ({"password2": "another"}, "password2"),
    ],
)
def test_the_first_field_that_was_refused_has_the_focus(
    client: Client, db: None, wrong: dict[str, str], focused: str
) -> None:
    page = client.post("/signup", NEW | wrong) if wrong else client.get("/signup")
    inputs = [tag for tag in re.findall("<input[^>]*>", page.content.decode()) if "autofocus" in tag]
    assert len(inputs) == 1 and f'name="{focused}"' in inputs[0]


@pytest.mark.parametrize("target", ["https://evil.example/", "//evil.example", "javascript:alert(1)"])
def test_a_foreign_next_is_not_followed(client: Client, make_user: MakeUser, target: str) -> None:
    make_user("ann")
    response = client.post("/signin", {"username": "ann", "password": PASSWORD, "next": target})
    assert response["location"] == "/"


@pytest.mark.parametrize("target", ["nowhere", "signup", "c"])
def test_a_next_without_a_slash_is_a_path_and_no_view(
    client: Client, make_user: MakeUser, target: str
) -> None:
    make_user("ann")
    response = client.post("/signin", {"username": "ann", "password": PASSWORD, "next": target})
    assert (response.status_code, response["location"]) == (302, target)


@pytest.mark.parametrize(
    "unchecked", [{"username": "ann", "password": ""}, {"username": "", "password": "x"}]
)
def test_a_form_that_checks_no_password_clears_no_count(
    client: Client, make_user: MakeUser, unchecked: dict[str, str]
) -> None:
    make_user("ann")
    client.post("/signin", {"username": "ann", "password": "wrong"})
    before = sorted(SignInFailures.objects.values_list("name_sha256", "count"))
    client.post("/signin", unchecked)
    assert sorted(SignInFailures.objects.values_list("name_sha256", "count")) == before


def test_unknown_names_and_wrong_passwords_look_the_same(client: Client, make_user: MakeUser) -> None:
    make_user("ann")
    known = client.post("/signin", {"username": "ann", "password": "wrong"})
    unknown = client.post("/signin", {"username": "bob", "password": "wrong"})
    assert known.status_code == unknown.status_code == 200
    texts = [list(response.context["form"].non_field_errors()) for response in (known, unknown)]
    assert texts[0] and texts[0] == texts[1]
    assert not is_signed_in(client)


@pytest.mark.parametrize("name", ["a\x00b", "x" * 500, "\u202e", ""])
def test_odd_names_are_form_errors(client: Client, db: None, name: str) -> None:
    for path, fields in (("/signin", {"password": "x"}), ("/signup", {"password1": "x", "password2": "x"})):
        response = client.post(path, {"username": name, **fields})
        assert response.status_code == 200 and response.context["form"].errors


def test_a_form_without_csrf_token_is_refused(make_user: MakeUser) -> None:
    make_user("ann")
    strict = Client(enforce_csrf_checks=True)
    for path in ("/signin", "/signup", "/guest", "/signout"):
        assert strict.post(path, {"username": "ann", "password": PASSWORD}).status_code == 403


def test_signing_in_changes_the_session_key(client: Client, make_user: MakeUser) -> None:
    make_user("ann")
    session = client.session
    session["before"] = 1
    session.save()
    before = session.session_key
    client.post("/signin", {"username": "ann", "password": PASSWORD})
    assert client.session.session_key != before


def test_the_sixth_try_is_not_checked_even_with_the_right_password(
    client: Client, make_user: MakeUser
) -> None:
    make_user("ann")
    for _ in range(brake.MOST_PER_NAME):
        client.post("/signin", {"username": "ann", "password": "wrong"})
    client.post("/signin", {"username": "ann", "password": PASSWORD})
    assert not is_signed_in(client)


def test_the_admin_has_the_same_brake(client: Client, make_user: MakeUser) -> None:
    make_user("root", is_staff=True)
    for _ in range(brake.MOST_PER_NAME):
        client.post("/admin/login/", {"username": "root", "password": "wrong"})
    client.post("/admin/login/", {"username": "root", "password": PASSWORD})
    assert not is_signed_in(client)


def test_ordinary_people_cannot_sign_in_to_the_admin(client: Client, make_user: MakeUser) -> None:
    make_user("ann")
    client.post("/admin/login/", {"username": "ann", "password": PASSWORD})
    assert not is_signed_in(client)


def test_the_brake_does_not_lock_out_the_right_person_elsewhere(client: Client, make_user: MakeUser) -> None:
    make_user("ann")
    for _ in range(brake.MOST_PER_NAME):
        client.post("/signin", {"username": "ann", "password": "wrong"}, REMOTE_ADDR="203.0.113.9")
    client.post("/signin", {"username": "ann", "password": PASSWORD}, REMOTE_ADDR="198.51.100.7")
    assert is_signed_in(client)


def test_one_address_tries_a_bounded_number_of_names(client: Client, make_user: MakeUser) -> None:
    make_user("ann")
    for number in range(brake.MOST_PER_ADDRESS):
        assert brake.may_try("127.0.0.1", f"name{number}")
    client.post("/signin", {"username": "ann", "password": PASSWORD})
    assert not is_signed_in(client)


def test_the_brake_lets_go_and_its_table_is_emptied(client: Client, make_user: MakeUser) -> None:
    make_user("ann")
    for _ in range(brake.MOST_PER_NAME):
        assert brake.may_try("127.0.0.1", "ann")
    assert not brake.may_try("127.0.0.1", "ann")
    SignInFailures.objects.update(window_start=timezone.now() - brake.WINDOW - timedelta(seconds=1))
    assert brake.may_try("127.0.0.1", "bob")
    assert SignInFailures.objects.count() == 3  # bob's, the address's, and bob's from anywhere
    assert brake.may_try("127.0.0.1", "ann")


def test_a_proxy_is_believed_only_when_it_is_trusted(rf, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    request = rf.get("/", headers={"X-Forwarded-For": "203.0.113.1, 198.51.100.2"}, REMOTE_ADDR="10.0.0.1")
    assert brake.client_address(request) == "10.0.0.1"
    allow(monkeypatch, trust_proxy=True)
    assert brake.client_address(request) == "198.51.100.2"


def test_neighbours_in_one_ipv6_network_count_as_one(rf) -> None:  # type: ignore[no-untyped-def]
    addresses = {brake.client_address(rf.get("/", REMOTE_ADDR=f"2001:db8::{n}")) for n in range(1, 4)}
    assert addresses == {"2001:db8::"}


def test_sign_up_makes_an_ordinary_account_and_signs_in(client: Client, db: None) -> None:
    response = client.post("/signup", NEW | {"is_staff": "on", "is_superuser": "on", "tenant": "2"})
    assert response.status_code == 302 and is_signed_in(client)
    user = User.objects.get(username="newcomer")
    assert not (user.is_staff or user.is_superuser or user.is_guest)
    assert user.tenant == Tenant.objects.default() and user.check_password(PASSWORD)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"password2": "other"}, "password2"),
        ({"username": "ann"}, "username"),
        ({"username": "guest-x"}, "username"),
    ],
)
def test_sign_up_names_the_field_that_is_wrong(
    client: Client, make_user: MakeUser, change: dict[str, str], field: str
) -> None:
    make_user("ann")
    response = client.post("/signup", NEW | change)
    assert response.status_code == 200 and field in response.context["form"].errors


def test_sign_up_can_be_closed(client: Client, db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    allow(monkeypatch, signup=False)
    assert client.get("/signup").status_code == 404
    assert client.post("/signup", NEW).status_code == 404 and not User.objects.exists()


@pytest.mark.usefixtures("guests_allowed")
def test_a_guest_is_a_user_of_seven_days(client: Client, db: None) -> None:
    assert client.post("/guest").status_code == 302 and is_signed_in(client)
    guest = User.objects.get()
    assert guest.is_guest and not guest.has_usable_password() and guest.guest_until is not None
    assert timedelta(days=6, hours=23) < guest.guest_until - timezone.now() <= timedelta(days=7)
    assert client.session.get_expiry_age() <= 7 * 86400


@pytest.mark.usefixtures("guests_allowed")
def test_entering_twice_makes_one_guest(client: Client, db: None) -> None:
    client.post("/guest")
    client.post("/guest")
    assert User.objects.count() == 1


@pytest.mark.usefixtures("guests_allowed")
def test_one_address_gets_a_bounded_number_of_guests(db: None) -> None:
    for _ in range(brake.MOST_NEW_PER_ADDRESS - 1):
        brake.count_new("127.0.0.1", GUEST)
    answers = [Client().post("/guest").status_code for _ in range(3)]
    assert answers == [302, 429, 429] and User.objects.count() == 1


def test_guests_are_off_by_default(client: Client, db: None) -> None:
    assert client.post("/guest").status_code == 404 and not User.objects.exists()


def test_expired_guests_are_unwelcome_and_listed(make_user: MakeUser) -> None:
    ann = make_user("ann")
    past = make_user("guest-old", is_guest=True, guest_until=timezone.now() - timedelta(seconds=1))
    present = make_user("guest-new", is_guest=True, guest_until=timezone.now() + timedelta(days=1))
    assert (is_welcome(ann), is_welcome(past), is_welcome(present)) == (True, False, True)
    assert expired_guests(10) == [past]


@pytest.mark.usefixtures("guests_allowed")
def test_a_guest_whose_days_are_over_gets_the_form_and_can_enter_anew(
    client: Client, make_user: MakeUser
) -> None:
    past = make_user("guest-old", is_guest=True, guest_until=timezone.now() - timedelta(seconds=1))
    client.force_login(past)
    assert client.get("/signin").status_code == 200
    assert client.post("/guest").status_code == 302
    assert client.session["_auth_user_id"] != str(past.pk)


def test_signing_out_ends_the_session(client: Client, make_user: MakeUser) -> None:
    client.force_login(make_user())
    assert client.get("/signout").status_code == 405
    assert client.post("/signout")["location"] == "/signin"
    assert not is_signed_in(client)


def test_new_guests_do_not_keep_their_neighbours_from_signing_in(client: Client, make_user: MakeUser) -> None:
    make_user("ann")
    for _ in range(brake.MOST_NEW_PER_ADDRESS):
        brake.count_new("127.0.0.1", GUEST)
    client.post("/signin", {"username": "ann", "password": PASSWORD})
    assert is_signed_in(client)
