"""Guessing is slow, by whatever way, and tells nothing; the rightful user comes in all the same (S14)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.hashers import MD5PasswordHasher
from django.db import connection
from django.test import Client

from chatsite.accounts import brake
from chatsite.accounts.models import SignInFailures, User
from tests.accounts.conftest import PASSWORD

MakeUser = Callable[..., User]


def guess(client: Client, name: str = "ann", password: str = "wrong", address: str = "203.0.113.9") -> Any:
    return client.post("/signin", {"username": name, "password": password}, REMOTE_ADDR=address)


def is_in(client: Client) -> bool:
    return "_auth_user_id" in client.session


@pytest.fixture
def hashes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The passwords that were put through the slow function: what takes the time, whatever the machine does."""
    seen: list[str] = []
    encode = MD5PasswordHasher.encode

    def counted(self: Any, password: str, salt: str, *rest: Any) -> str:
        seen.append(password)
        return encode(self, password, salt, *rest)

    monkeypatch.setattr(MD5PasswordHasher, "encode", counted)
    return seen


def test_of_many_tries_five_are_checked(client: Client, make_user: MakeUser, hashes: list[str]) -> None:
    make_user("ann")
    hashes.clear()
    for number in range(20):
        guess(client, password=f"guess {number}")
    assert len(hashes) == brake.MOST_PER_NAME
    assert not any(brake.may_try("203.0.113.9", "ann") for _ in range(180))
    guess(client, password=PASSWORD, address="198.51.100.7")
    assert is_in(client), "tries at one address lock nobody out at another"


@pytest.mark.parametrize("spelling", ["ann", "ANN", " ann ", "Ann"])
def test_spelling_a_name_otherwise_gives_no_further_tries(
    client: Client, make_user: MakeUser, hashes: list[str], spelling: str
) -> None:
    make_user("ann")
    for _ in range(brake.MOST_PER_NAME):
        guess(client)
    hashes.clear()
    guess(client, spelling)
    assert hashes == []


def test_known_and_unknown_names_cost_the_same(
    client: Client, make_user: MakeUser, hashes: list[str]
) -> None:
    """And say the same: there is nothing to learn from the clock or the page."""
    make_user("ann")
    make_user("off", is_active=False)
    make_user("by-provider").set_unusable_password()
    User.objects.filter(username="by-provider").update(password="!x")
    seen = {}
    for name in ("ann", "nobody", "off", "by-provider"):
        hashes.clear()
        page = guess(client, name)
        seen[name] = (page.status_code, len(hashes), list(page.context["form"].non_field_errors()))
    assert len({repr(one) for one in seen.values()}) == 1 and seen["ann"][1] == 1, seen


def test_tries_from_very_many_addresses_are_bounded_too(client: Client, make_user: MakeUser) -> None:
    """But a browser in which the user has been before is not locked out by them, nor is anybody else."""
    make_user("ann")
    make_user("bob")
    known = Client()
    guess(known, password=PASSWORD)
    known.post("/signout")
    for number in range(brake.MOST_PER_NAME_ANYWHERE):
        assert brake.may_try(f"198.51.100.{number}", "ann")
    guess(client, password=PASSWORD)
    assert not is_in(client)
    guess(known, password=PASSWORD)
    assert is_in(known)
    guess(client, "bob", PASSWORD)
    assert is_in(client)


def test_what_a_browser_shows_is_for_one_name_and_not_to_be_forged(
    client: Client, make_user: MakeUser
) -> None:
    make_user("ann")
    make_user("eve")
    guess(client, "eve", PASSWORD)
    cookie = client.cookies["known"]
    assert cookie["httponly"] and cookie["samesite"] == "Lax"
    request = client.get("/signin").wsgi_request
    assert brake.is_known(request, "eve") and not brake.is_known(request, "ann")
    for forged in ("", "x", cookie.value[:-2] + "AA", cookie.value.split(":")[0]):
        request.COOKIES["known"] = forged
        assert not brake.is_known(request, "eve")


def test_a_known_browser_has_no_more_tries_than_others(
    client: Client, make_user: MakeUser, hashes: list[str]
) -> None:
    make_user("ann")
    guess(client, password=PASSWORD)
    client.post("/signout")
    hashes.clear()
    for _ in range(20):
        guess(client)
    assert len(hashes) == brake.MOST_PER_NAME


def test_signing_in_uses_nothing_up(client: Client, make_user: MakeUser) -> None:
    """A busy office behind one address signs in all day."""
    make_user("ann")
    for _ in range(brake.MOST_PER_ADDRESS + 5):
        assert brake.may_try("203.0.113.9", "ann")
        brake.forget_failures("203.0.113.9", "ann")
    assert not SignInFailures.objects.filter(count__gt=0).exists()


@pytest.mark.django_db(transaction=True)
def test_tries_at_the_same_moment_all_count() -> None:
    """Counted before the check and in one statement: sixteen at once are not sixteen that were checked."""
    allowed: list[bool] = []
    gate = threading.Barrier(16)

    def attempt() -> None:
        gate.wait()
        allowed.append(brake.may_try("203.0.113.9", "ann"))
        connection.close()

    threads = [threading.Thread(target=attempt) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(allowed), sum(allowed)) == (16, brake.MOST_PER_NAME)
