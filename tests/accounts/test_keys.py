"""Keys as functions: what is stored, what is refused. Their life over HTTP is in tests/v1/test_keys.py."""

from __future__ import annotations

import hashlib
import io
import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from chatsite.accounts import keys
from chatsite.accounts.keys import KeyRefused, authenticate, create_key
from chatsite.accounts.models import ApiKey, User

MakeUser = Callable[..., User]


def run(command: str, *arguments: str) -> str:
    out = io.StringIO()
    call_command(command, *arguments, stdout=out)
    return out.getvalue().strip()


def test_a_key_is_256_bits_and_only_its_hash_is_stored(make_user: MakeUser) -> None:
    key, secret = create_key(make_user(), "test", ["chat"])
    assert keys.FORM.fullmatch(secret) and secret.startswith(key.prefix)
    assert secret[len(key.prefix) :] not in repr(ApiKey.objects.values().get())


def test_a_key_knows_its_caller(make_user: MakeUser) -> None:
    user = make_user()
    key, secret = create_key(user, "test", ["chat"])
    caller = authenticate(f"Bearer {secret}", ("chat",))
    assert (caller.user_id, caller.api_key, caller.tenant) == (user.pk, key.pk, str(user.tenant_id))
    assert authenticate(f"bearer  {secret} ", ("chat",)) == caller


@pytest.mark.parametrize("scopes", [[], ["everything"], ["chat", "root"]])
def test_unknown_scopes_make_no_key(make_user: MakeUser, scopes: list[str]) -> None:
    with pytest.raises(ValueError, match="scopes"):
        create_key(make_user(), "test", scopes)


@pytest.mark.parametrize(
    ("change", "code", "status"),
    [
        ({"expires_at": timezone.now() - timedelta(seconds=1)}, "key_expired", 401),
        ({"revoked_at": timezone.now()}, "key_revoked", 401),
        ({"scopes": ["embeddings"]}, "missing_scope", 403),
        ({"sha256": "0" * 64}, "invalid_api_key", 401),
    ],
)
def test_a_key_that_does_not_fit_is_refused(
    make_user: MakeUser, change: dict[str, Any], code: str, status: int
) -> None:
    key, secret = create_key(make_user(), "test", ["chat"])
    ApiKey.objects.filter(pk=key.pk).update(**change)
    with pytest.raises(KeyRefused) as caught:
        authenticate(f"Bearer {secret}", ("chat",))
    assert (caught.value.code, caught.value.status) == (code, status)


def odd_headers(secret: str) -> list[str]:
    """A thousand Authorization headers that are no key's: cut, changed, doubled, of other kinds and alphabets."""
    rng = random.Random(4711)
    odd = ["", " ", "Bearer", "Bearer ", secret, f"Token {secret}", f"Bearer {secret},Bearer {secret}"]
    odd += [f"Bearer {secret[:n]}" for n in range(len(secret))]
    odd += [f"Bearer {secret}{tail}" for tail in ("x", "\x00", "%00", "'", '"', ";", " x", "\u200b", "=")]
    odd += [
        f"Bearer rill_{chr(code) * 43}"
        for code in (0, 1, 10, 32, 39, 59, 92, 127, 0x660, 0x212A, 0xFF41, 0x1F600)
    ]
    odd += [
        f"Bearer {secret[:place]}{'A' if secret[place] != 'A' else 'B'}{secret[place + 1 :]}"
        for place in range(5, 48)
    ]
    odd += [
        f"Bearer rill_{digest}"[:55]
        for digest in (secret.swapcase(), "' OR 1=1 --" + "x" * 40, "%" * 43, "_" * 43)
    ]
    while len(odd) < 1000:
        length = rng.choice((1, 43, 48, 500))
        odd.append(
            rng.choice(("Bearer ", "bearer rill_", "Basic ", ""))
            + "".join(chr(rng.randrange(0x2FF)) for _ in range(length))
        )
    return odd


def test_a_thousand_odd_headers_are_401_and_nothing_else(make_user: MakeUser) -> None:
    """S13."""
    _, secret = create_key(make_user(), "test", ["chat"])
    for header in odd_headers(secret):
        with pytest.raises(KeyRefused) as caught:
            authenticate(header, ("chat",))
        assert caught.value.status == 401, ascii(header)


def test_two_keys_of_one_prefix_never_mix(make_user: MakeUser) -> None:
    """S13: the whole key is compared, whatever found its row."""
    made = [create_key(make_user(name), "test", ["chat"]) for name in ("ann", "bob")]
    prefix = made[0][1][:13]
    twins = []
    for number, (key, _) in enumerate(made):
        secret = prefix + f"{number:035d}"
        twins.append(secret)
        ApiKey.objects.filter(pk=key.pk).update(
            prefix=prefix, sha256=hashlib.sha256(secret.encode()).hexdigest()
        )
    for (key, _), secret in zip(made, twins, strict=True):
        assert authenticate(f"Bearer {secret}", ("chat",)).api_key == key.pk
    with pytest.raises(KeyRefused):
        authenticate(f"Bearer {prefix}{2:035d}", ("chat",))


def test_createkey_makes_a_user_without_password_and_prints_only_the_key(db: None) -> None:
    secret = run("createkey", "--user", "robot", "--scopes", "embeddings", "--days", "3", "--name", "job")
    key = ApiKey.objects.get()
    assert authenticate(f"Bearer {secret}", ("embeddings",)).api_key == key.pk
    assert key.name == "job" and not key.user.has_usable_password()
    assert key.expires_at is not None and key.expires_at > timezone.now() + timedelta(days=2)


@pytest.mark.parametrize(
    "arguments", [("--user", "a b"), ("--user", "x", "--days", "0"), ("--user", "x", "--scopes", "z")]
)
def test_createkey_says_what_is_wrong(db: None, arguments: tuple[str, ...]) -> None:
    with pytest.raises(CommandError):
        run("createkey", *arguments)
    assert not ApiKey.objects.exists()


def test_ensure_admin_makes_one_superuser_and_never_prints_the_password(
    db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ADMIN_PASSWORD", "very secret words")
    assert "very secret" not in run("ensure_admin")
    admin = User.objects.get()
    assert admin.is_superuser and admin.check_password("very secret words")
    monkeypatch.setenv("ADMIN_PASSWORD", "others")
    assert run("ensure_admin") == "superuser exists: admin"
    admin.refresh_from_db()
    assert admin.check_password("very secret words")


def test_ensure_admin_promotes_nobody(make_user: MakeUser, monkeypatch: pytest.MonkeyPatch) -> None:
    make_user("admin")
    monkeypatch.setenv("ADMIN_PASSWORD", "very secret words")
    with pytest.raises(CommandError):
        run("ensure_admin")


def test_the_admin_shows_a_new_key_once(client: Client, make_user: MakeUser) -> None:
    client.force_login(User.objects.create_superuser("root", password="x"))
    fields = {
        "user": make_user().pk,
        "name": "made by staff",
        "scopes": ["chat"],
        "expires_at_0": "",
        "expires_at_1": "",
    }
    shown = client.post("/admin/accounts/apikey/add/", fields, follow=True).content.decode()
    key = ApiKey.objects.get()
    secret = next(
        word for word in shown.replace("<", " ").split() if word.startswith(key.prefix) and len(word) > 20
    )
    assert authenticate(f"Bearer {secret}", ("chat",)).api_key == key.pk
    assert secret not in client.get(f"/admin/accounts/apikey/{key.pk}/change/").content.decode()


@pytest.mark.parametrize("page", ["tenant", "user", "apikey", "usagerecord"])
def test_the_admin_lists_with_a_bounded_number_of_queries(
    client: Client,
    make_user: MakeUser,
    page: str,
    django_assert_max_num_queries: Any,
) -> None:
    client.force_login(User.objects.create_superuser("root", password="x"))
    for number in range(20):
        create_key(make_user(f"user{number}"), "test", ["chat"])
    with django_assert_max_num_queries(12):
        assert client.get(f"/admin/accounts/{page}/").status_code == 200


def test_usage_records_cannot_be_changed(client: Client, db: None) -> None:
    client.force_login(User.objects.create_superuser("root", password="x"))
    assert client.get("/admin/accounts/usagerecord/add/").status_code == 403
