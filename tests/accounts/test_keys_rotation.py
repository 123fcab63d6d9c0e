"""A key's place taken by another: what the new one may, how long the old one goes on, and whom that must not help."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from asgiref.sync import sync_to_async
from django.test import Client
from django.utils import timezone

from chatsite.accounts import api, auth
from chatsite.accounts.keys import KeyRefused, authenticate, create_key
from chatsite.accounts.models import ApiKey, Quota, QuotaUse, Tenant, User
from chatsite.accounts.quotas.admission import admit
from chatsite.accounts.quotas.refusals import QuotaExceeded
from chatsite.accounts.quotas.rules import window_start
from chatsite.chat.turn import Caller

MakeUser = Callable[..., User]


def works(secret: str, scope: str = "chat") -> bool:
    try:
        authenticate(f"Bearer {secret}", (scope,))
    except KeyRefused:
        return False
    return True


def rotate(client: Client, key: object, **asked: Any) -> Any:
    return client.post(f"/api/keys/{key}/rotate", json.dumps(asked), content_type="application/json")


@pytest.fixture
def ann(client: Client, make_user: MakeUser, monkeypatch: pytest.MonkeyPatch) -> User:
    """Signed in; what the API does in the database is done within the test's transaction."""

    async def in_transaction(fn: Callable[..., Any], *args: Any) -> Any:
        return await sync_to_async(fn)(*args)

    for module in (api, auth):
        monkeypatch.setattr(module, "run_in_db", in_transaction)
    user = make_user("ann")
    client.force_login(user)
    return user


def test_both_keys_work_during_the_grace_and_then_the_new_one_alone(client: Client, ann: User) -> None:
    line = Tenant.objects.create(slug="other", name="Other")
    old, secret = create_key(ann, "job", ["usage", "chat"])
    ApiKey.objects.filter(pk=old.pk).update(tenant=line)
    made = rotate(client, old.pk, grace_s=3600)
    assert made.status_code == 201
    new = ApiKey.objects.get(pk=made.json()["id"])
    assert works(secret) and works(made.json()["key"]) and secret != made.json()["key"]
    assert (new.name, new.scopes, new.tenant, new.user, new.expires_at) == (
        "job", ["usage", "chat"], line, ann, None,
    )  # fmt: skip
    old.refresh_from_db()
    assert old.replaced_by == new and old.expires_at is not None
    assert timedelta(minutes=59) < old.expires_at - timezone.now() <= timedelta(hours=1)
    ApiKey.objects.filter(pk=old.pk).update(expires_at=timezone.now())
    assert not works(secret) and works(made.json()["key"])
    listed = {row["id"]: row["replaced_by_id"] for row in client.get("/api/keys").json()}
    assert listed == {str(old.pk): str(new.pk), str(new.pk): None}


def test_without_grace_the_old_key_ends_at_once(client: Client, ann: User) -> None:
    old, secret = create_key(ann, "job", ["chat"])
    made = rotate(client, old.pk, grace_s=0)
    assert works(made.json()["key"]) and not works(secret)


@pytest.mark.parametrize(
    "asked", [{"grace_s": 7 * 86_400 + 1}, {"grace_s": -1}, {"days": 0}, {"grace_s": "x"}]
)
def test_no_grace_is_longer_than_seven_days(client: Client, ann: User, asked: dict[str, Any]) -> None:
    old, _ = create_key(ann, "job", ["chat"])
    assert rotate(client, old.pk, **asked).status_code == 400
    assert ApiKey.objects.count() == 1


def test_a_grace_prolongs_nothing(client: Client, ann: User) -> None:
    """Neither the old key, nor, unless a new life is asked for, the one in its place."""
    end = timezone.now() + timedelta(hours=1)
    old, _ = create_key(ann, "job", ["chat"], end)
    made = rotate(client, old.pk, grace_s=86_400)
    old.refresh_from_db()
    assert old.expires_at == end and ApiKey.objects.get(pk=made.json()["id"]).expires_at == end
    again = rotate(client, made.json()["id"], days=30)
    prolonged = ApiKey.objects.get(pk=again.json()["id"]).expires_at
    assert prolonged is not None and prolonged > timezone.now() + timedelta(days=29)


def test_what_staff_gave_for_a_time_is_not_prolonged_by_its_owner(client: Client, ann: User) -> None:
    end = timezone.now() + timedelta(hours=1)
    old, _ = create_key(ann, "job", ["cache-admin"], end)
    assert rotate(client, old.pk, days=30).status_code == 400
    made = rotate(client, old.pk)
    assert made.json()["scopes"] == ["cache-admin"]
    assert ApiKey.objects.get(pk=made.json()["id"]).expires_at == end


def test_keys_that_ended_or_were_replaced_or_are_somebody_elses_are_not_rotated(
    client: Client, ann: User, make_user: MakeUser
) -> None:
    revoked, _ = create_key(ann, "revoked", ["chat"])
    ApiKey.objects.filter(pk=revoked.pk).update(revoked_at=timezone.now())
    expired, _ = create_key(ann, "expired", ["chat"], timezone.now())
    replaced, _ = create_key(ann, "replaced", ["chat"])
    assert rotate(client, replaced.pk).status_code == 201
    foreign, _ = create_key(make_user("bob"), "foreign", ["chat"])
    before = ApiKey.objects.count()
    for key in (revoked, expired, replaced):
        refused = rotate(client, key.pk)
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "not_rotatable")
    answers = [rotate(client, key) for key in (foreign.pk, uuid4())]
    assert [answer.status_code for answer in answers] == [404, 404]
    assert answers[0].content == answers[1].content
    assert ApiKey.objects.count() == before


def test_rotating_is_no_way_around_a_limit(client: Client, ann: User) -> None:
    """The new key has the old one's quotas, and both are counted together for as long as both are good."""
    old, _ = create_key(ann, "job", ["chat"])
    Quota.objects.create(applies="key", api_key=old, window_s=3600, max_requests=10)
    QuotaUse.objects.create(
        subject=f"key:{old.pk}",
        window_s=3600,
        window_start=window_start(timezone.now(), 3600),
        requests=8,
        tokens=5,
        reserved_tokens=7,
    )
    new = rotate(client, old.pk).json()["id"]
    assert Quota.objects.get(api_key_id=new).max_requests == 10
    used = QuotaUse.objects.get(subject=f"key:{new}")
    assert (used.requests, used.tokens, used.reserved_tokens) == (8, 5, 7)
    newest = rotate(client, new).json()["id"]
    for key in (old.pk, UUID(newest)):
        admit(Caller(ann.pk, str(ann.tenant_id), key), [uuid4()], lambda _: 0)
    for key in (old.pk, UUID(new), UUID(newest)):
        with pytest.raises(QuotaExceeded):
            admit(Caller(ann.pk, str(ann.tenant_id), key), [uuid4()], lambda _: 0)


def test_rotating_cannot_pile_up_keys(client: Client, ann: User) -> None:
    key = create_key(ann, "job", ["chat"])[0].pk
    statuses = []
    for _ in range(51):
        made = rotate(client, key, grace_s=604_800)
        statuses.append(made.status_code)
        key = made.json().get("id", key)
    assert statuses == [201] * 49 + [409] * 2


def test_a_key_cannot_rotate_itself_or_make_or_end_keys(ann: User) -> None:
    key, secret = create_key(ann, "job", ["chat", "usage", "embeddings", "cache-admin"])
    bearer = {"Authorization": f"Bearer {secret}"}
    for method, path in (("POST", f"/{key.pk}/rotate"), ("POST", ""), ("DELETE", f"/{key.pk}"), ("GET", "")):
        answer = Client().generic(method, f"/api/keys{path}", "{}", "application/json", headers=bearer)
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "session_required")


@pytest.mark.parametrize(
    "change", ["user", "tenant", "scopes", "sha256", "prefix", "expires_at", "replaced_by"]
)
def test_what_is_posted_beside_the_fields_changes_nothing(
    client: Client, ann: User, make_user: MakeUser, change: str
) -> None:
    """S32: a request sets what it may set and nothing else."""
    other = make_user("other")
    values = {
        "user": other.pk, "tenant": 99, "scopes": ["cache-admin"], "sha256": "0" * 64, "prefix": "rill_x",
        "expires_at": "2099-01-01T00:00:00Z", "replaced_by": str(uuid4()),
    }  # fmt: skip
    key, _ = create_key(ann, "job", ["chat"])
    over = {change: values[change], f"{change}_id": values[change]}
    new = ApiKey.objects.get(pk=rotate(client, key.pk, **over).json()["id"])
    assert (new.user, new.tenant, new.scopes, new.expires_at) == (ann, ann.tenant, ["chat"], None)
    assert new.sha256 != "0" * 64 and new.prefix != "rill_x" and new.replaced_by is None
