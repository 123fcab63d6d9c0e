"""People and keys for tests of accounts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from chatsite.accounts.models import User

PASSWORD = "correct horse battery"


@pytest.fixture(autouse=True)
def quick_passwords(settings: Any) -> None:
    """A real password hash takes a second on a busy machine; nothing here is about hashing."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture
def make_user(db: None) -> Callable[..., User]:
    def make(name: str = "ann", **fields: Any) -> User:
        return User.objects.create_user(name, password=PASSWORD, **fields)

    return make
