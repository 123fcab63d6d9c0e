"""The page of one's API keys: who gets it, and what it is made of."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.test import Client
from django.utils import timezone

from chatsite.accounts.models import User

MakeUser = Callable[..., User]


def text_of(response: Any) -> str:
    assert response.status_code == 200, response.status_code
    return str(response.content.decode())


def test_whoever_is_not_signed_in_is_sent_to_the_door(client: Client, db: None) -> None:
    assert client.get("/keys")["location"] == "/signin?next=/keys"
    assert client.post("/keys").status_code == 405


def test_the_page_is_strict_and_can_ask_the_api(client: Client, make_user: MakeUser) -> None:
    client.force_login(make_user())
    response = client.get("/keys")
    page = text_of(response)
    policy = response["Content-Security-Policy"]
    assert "script-src 'self'" in policy and "require-trusted-types-for 'script'" in policy
    assert "unsafe" not in policy and "<script>" not in page and "style=" not in page
    assert "csrftoken" in response.cookies and 'name="csrf-token"' in page
    assert "http://testserver/v1" in page


def test_guests_read_why_they_have_none(client: Client, make_user: MakeUser) -> None:
    client.force_login(make_user("gast", is_guest=True, guest_until=timezone.now() + timedelta(days=7)))
    page = text_of(client.get("/keys"))
    assert "Guests have no API keys." in page and 'id="keys"' not in page


def test_the_page_speaks_chinese(client: Client, make_user: MakeUser) -> None:
    client.force_login(make_user())
    assert "API 密钥" in text_of(client.get("/keys", headers={"Accept-Language": "zh-hans"}))
