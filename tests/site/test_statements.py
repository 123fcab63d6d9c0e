"""What is inserted by a statement that was composed once is what the ORM would have inserted."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.models import Model
from django.utils import timezone

from chatsite import statements
from chatsite.accounts.models import Tenant, UsageRecord, User
from chatsite.chat.models import Conversation, Generation, Message, Role, State
from chatsite.statements import Insert

pytestmark = pytest.mark.django_db
SOON = {"deadline_at": "statement_timestamp() + make_interval(secs => %s)"}


@pytest.fixture
def user() -> User:
    return User.objects.create_user("somebody", tenant=Tenant.objects.get())


def row_of(kind: str, user: User) -> Model:
    odd = "a 'quoted' %s \\ 你好"
    talk = Conversation(owner=user, title=odd, parameters={"stop": [odd], "top_p": 0.5}, tags=[odd, "b,c"])
    if kind == "conversation":
        return talk
    if kind == "usage":
        return UsageRecord(
            generation=uuid4(), user=user, tenant_id=user.tenant_id, cost=Decimal("1.000000001"), model=odd
        )
    talk.save()
    message = Message(
        conversation=talk, role=Role.ASSISTANT, text=odd, token_ids=[1, 2**31 - 1], state=State.QUEUED
    )
    if kind == "message":
        return message
    message.save()
    return Generation(message=message, user=user, deadline_at=timezone.now())


@pytest.mark.parametrize("kind", ["conversation", "message", "generation", "usage"])
def test_every_column_is_as_the_orm_would_have_it(user: User, kind: str) -> None:
    row = row_of(kind, user)
    assert Insert(type(row))(row)
    key = {"generation": row.generation} if isinstance(row, UsageRecord) else {"pk": row.pk}
    assert _columns(type(row)._default_manager.get(**key)) == _columns(row)


def test_a_time_is_the_databases_where_it_is_to_be(user: User) -> None:
    row = row_of("generation", user)
    Insert(Generation, SOON)(row, deadline_at=60)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT extract(epoch FROM deadline_at - transaction_timestamp()) FROM chat_generation WHERE id = %s",
            [row.pk],
        )
        (seconds,) = cursor.fetchone()
    assert 60 <= seconds < 90


def test_it_is_told_whether_there_was_one_already(user: User) -> None:
    row = row_of("conversation", user)
    insert = Insert(Conversation, on_conflict="ON CONFLICT DO NOTHING")
    assert (insert(row), insert(row)) == (True, False)
    with pytest.raises(IntegrityError), transaction.atomic():
        Insert(Conversation)(row)


def test_rows_are_read_and_counted(user: User) -> None:
    name = "SELECT username FROM accounts_user WHERE id = %s"
    assert statements.first(name, [user.pk]) == ("somebody",)
    assert statements.first(name, [0]) is None
    assert (statements.value(name, [user.pk]), statements.value(name, [0])) == ("somebody", None)
    assert statements.every(name, [user.pk]) == [("somebody",)]
    assert statements.changed("UPDATE accounts_user SET username = %s WHERE id = %s", ["x", user.pk]) == 1


def _columns(row: Model) -> dict[str, Any]:
    """But for a number that the database gives."""
    return {
        field.attname: getattr(row, field.attname)
        for field in row._meta.concrete_fields
        if not (isinstance(row, UsageRecord) and field.primary_key)
    }
