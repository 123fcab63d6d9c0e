"""What tables keep of a person without hanging on their row, and what becomes of it when the person is erased.

The audit log stays, for it says what was done to the site: lines that the person wrote lose the author, lines about
the person lose their words. Knows the tables of Django's own applications.
"""

from __future__ import annotations

from django.contrib.admin.models import LogEntry
from django.contrib.auth import SESSION_KEY
from django.contrib.contenttypes.models import ContentType
from django.contrib.sessions.models import Session
from django.db.models import Q

from chatsite.accounts import brake
from chatsite.accounts.models import ApiKey, Identity, Quota, QuotaUse, User
from chatsite.accounts.quotas.rules import subject

# Signs what somebody did who is erased. With a space, which no form takes, so it is nobody's name.
ERASED = "erased account"


def forget_beside(person: User) -> dict[str, int]:
    """How many things went, by store. In the transaction that deletes the person, before it does."""
    keys = [str(pk) for pk in person.api_keys.values_list("pk", flat=True)]
    return {
        "quota_counts": QuotaUse.objects.filter(subject__in=_subjects(person, keys)).delete()[0],
        "sign_in_counts": brake.forget_name(person.username),
        "audit": _forget_in_audit(person, keys),
    }


def end_sessions(user_id: int) -> int:
    """Sessions of a user, who may be gone; how many. They have no column for it, so all are looked into."""
    mine = [
        session.pk
        for session in Session.objects.iterator(chunk_size=500)
        if session.get_decoded().get(SESSION_KEY) == str(user_id)
    ]
    return Session.objects.filter(pk__in=mine).delete()[0]


def _subjects(person: User, keys: list[str]) -> list[str]:
    return [subject("user", person.pk), *(subject("key", key) for key in keys)]


def _forget_in_audit(person: User, keys: list[str]) -> int:
    theirs = Q(content_type=_type(User), object_id=str(person.pk)) | Q(
        content_type=_type(ApiKey), object_id__in=keys
    )
    for model in (Identity, Quota):
        named = [str(pk) for pk in model.objects.filter(user=person).values_list("pk", flat=True)]
        theirs |= Q(content_type=_type(model), object_id__in=named)
    about = LogEntry.objects.filter(theirs).update(object_id=None, object_repr="", change_message="")
    written = LogEntry.objects.filter(user=person)
    return about + (written.update(user=_nobody()) if written.exists() else 0)


def _type(model: type) -> ContentType:
    return ContentType.objects.get_for_model(model)


def _nobody() -> User:
    """An account that nobody can sign in with."""
    known = User.objects.filter(username=ERASED).first()
    return known or User.objects.create_user(ERASED, is_active=False)
