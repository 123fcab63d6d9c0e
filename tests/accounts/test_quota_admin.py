"""Quotas as staff make and change them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from chatsite.accounts.callers import caller_of_user
from chatsite.accounts.keys import create_key
from chatsite.accounts.models import Quota, User
from chatsite.accounts.quotas.rules import in_force
from tests.accounts.test_quota_rules import YEAR, ask, quota

MakeUser = Callable[..., User]
LIST = "/admin/accounts/quota/"
EMPTY = {"user": "", "api_key": "", "tenant": "", "max_requests": "", "max_tokens": ""}
HOURLY = EMPTY | {"applies": "each_user", "window_s": "3600", "max_requests": "100"}


@pytest.fixture
def staff(client: Client, db: None) -> Client:
    client.force_login(User.objects.create_superuser("root"))
    return client


def test_what_staff_make_and_change_is_in_force_at_once_and_in_the_log(
    staff: Client, make_user: MakeUser
) -> None:
    ann = caller_of_user(make_user("ann"))
    assert staff.post(f"{LIST}add/", HOURLY).status_code == 302
    assert [limit.max_requests for limit in in_force(ann)] == [100]
    made = Quota.objects.get()
    staff.post(f"{LIST}{made.pk}/change/", HOURLY | {"max_requests": "50"})
    assert [limit.max_requests for limit in in_force(ann)] == [50]
    assert "max_requests: 100 -> 50" in LogEntry.objects.latest("pk").change_message
    staff.post(f"{LIST}{made.pk}/delete/", {"post": "yes"})
    assert in_force(ann) == []
    assert LogEntry.objects.count() == 3


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"applies": "user"}, "user"),
        ({"applies": "key"}, "api_key"),
        ({"applies": "tenant"}, "tenant"),
        ({"applies": "each_user", "user": "ann"}, "user"),
        ({"applies": "user", "user": "ann", "tenant": "1"}, "tenant"),
        ({"window_s": "0"}, "window_s"),
        ({"window_s": str(367 * 86_400)}, "window_s"),
        ({"max_requests": ""}, "max_requests"),
        ({"max_requests": "-1"}, "max_requests"),
        ({"max_tokens": "many"}, "max_tokens"),
        ({"window_s": str(YEAR)}, "window_s"),
        ({"applies": "everybody"}, "applies"),
    ],
)
def test_a_mistake_is_shown_at_its_field(
    staff: Client, make_user: MakeUser, change: dict[str, str], field: str
) -> None:
    ann = make_user("ann")
    quota("each_user", max_requests=1)
    given = {"user": str(ann.pk), "tenant": str(ann.tenant_id)}
    fields = HOURLY | {
        name: given[name] if name in given and value else value for name, value in change.items()
    }
    response = staff.post(f"{LIST}add/", fields)
    assert response.status_code == 200 and list(response.context["adminform"].form.errors) == [field]
    assert Quota.objects.count() == 1


def test_a_quota_for_one_key_is_made(staff: Client, make_user: MakeUser) -> None:
    key, _ = create_key(make_user("ann"), "test", ["chat"])
    fields = HOURLY | {"applies": "key", "api_key": str(key.pk), "max_tokens": "5"}
    assert staff.post(f"{LIST}add/", fields).status_code == 302
    assert Quota.objects.get().api_key == key


def test_the_list_shows_how_each_stands_in_a_bounded_number_of_queries(
    staff: Client, make_user: MakeUser, django_assert_max_num_queries: Any
) -> None:
    users = [make_user(name) for name in ("ann", "bob", "eve")]
    quota("each_user", max_requests=10, max_tokens=1000)
    for user, asked in zip(users, (1, 9, 0), strict=True):
        quota("user", 86_400, max_requests=20, user=user)
        for _ in range(asked):
            ask(caller_of_user(user))
    with django_assert_max_num_queries(16):
        page = staff.get(LIST).content.decode()
    assert "requests 90 %, tokens 0 %" in page, "that of whoever has used most"
    assert "requests 45 %" in page and "requests 5 %" in page and "one user: bob" in page
