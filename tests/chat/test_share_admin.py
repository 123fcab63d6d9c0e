"""Staff take back a link of anybody's: found by its address, without reading the chat, and written down."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.test import Client

from chatsite.accounts.models import User
from chatsite.chat import sharing
from chatsite.chat.models import Conversation, Message, ShareLink
from tests.chat.conftest import make_user

LIST = "/admin/chat/sharelink/"
WORDS = "zqwords of the chat"


@pytest.fixture
def link(transactional_db: None) -> tuple[ShareLink, str]:
    """Somebody's link and its secret."""
    row = Conversation.objects.create(owner=make_user("ann"), title="zqtitle")
    row.active_leaf = Message.objects.create(conversation=row, role="user", text=WORDS)
    row.save()
    return sharing.share(row.owner_id, row.pk)


def staff(client: Client, *permissions: str) -> User:
    user = make_user("boss")
    user.is_staff = True
    user.save()
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    client.force_login(user)
    return user


def take_back(client: Client, *links: ShareLink) -> Any:
    return client.post(LIST, {"action": "take_back", "_selected_action": [str(link.pk) for link in links]})


def test_a_link_is_found_by_its_address_and_taken_back_and_both_is_written_down_once(
    client: Client, link: tuple[ShareLink, str]
) -> None:
    row, secret = link
    other, _ = sharing.share(row.owner_id, row.conversation_id)
    boss = staff(client, "view_sharelink", "change_sharelink")
    for asked in (f"https://chat.example/s/{secret}", f"/s/{secret}/", secret, str(row.pk)):
        page = client.get(LIST, {"q": asked}).content.decode()
        assert str(row.pk) in page and str(other.pk) not in page, asked
    assert str(other.pk) in client.get(LIST, {"q": "ann"}).content.decode()
    assert Client().get(f"/s/{secret}").status_code == 200
    for _ in range(2):
        assert take_back(client, row).status_code == 302
    assert Client().get(f"/s/{secret}").status_code == 404
    row.refresh_from_db()
    other.refresh_from_db()
    assert (row.title, row.messages, other.revoked_at) == ("", [], None) and row.revoked_at is not None
    (line,) = LogEntry.objects.all()
    assert (line.user, line.object_id, line.get_change_message()) == (boss, str(row.pk), "Taken back.")


def test_what_was_shared_is_not_shown_to_staff(client: Client, link: tuple[ShareLink, str]) -> None:
    row, secret = link
    staff(client, "view_sharelink", "change_sharelink", "view_conversation")
    talk = f"/admin/chat/conversation/{row.conversation_id}/change/"
    for path in (LIST, f"{LIST}{row.pk}/change/", talk):
        page = client.get(path)
        assert page.status_code == 200
        assert all(word not in page.content.decode() for word in (WORDS, "zqtitle", secret, row.sha256))
    for path in (f"{LIST}add/", f"{LIST}{row.pk}/delete/"):
        assert client.get(path).status_code == 403


def test_whoever_may_only_look_takes_nothing_back(client: Client, link: tuple[ShareLink, str]) -> None:
    row, secret = link
    staff(client, "view_sharelink")
    assert "take_back" not in client.get(LIST).content.decode()
    take_back(client, row)
    assert Client().get(f"/s/{secret}").status_code == 200 and not LogEntry.objects.exists()
    client.force_login(User.objects.get(username="ann"))
    assert client.get(LIST).status_code == 302
