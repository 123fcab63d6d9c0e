"""Who changed what in the cache, in the admin's own log: values before and after, and hashes where texts are long.

Messages are plain data (`ttl_s: 600 -> 60`), the same in every language, because they are kept for good.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from django.contrib.admin.models import CHANGE, DELETION, LogEntry
from django.contrib.auth import get_user_model
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.contenttypes.models import ContentType
from django.db import IntegrityError, transaction
from django.db.models import Model
from django.forms import ModelForm
from django.http import HttpRequest

from semcache.models import CacheEntry

# A text above this length, and every answer, is told by its hash: the log outlives the entry and must not keep it.
MAX_SHOWN_CHARS = 200
# Signs what the cache does of its own accord. With a space, which no form takes, so it is nobody's name.
NOBODY = "semantic cache"


def changed(form: ModelForm[Any]) -> str:
    """Every changed field with its value before and after."""
    return "; ".join(
        f"{name}: {_shown(form[name].initial)} -> {_shown(form.cleaned_data.get(name))}"
        for name in form.changed_data
        if name in form.cleaned_data
    )


def hashed(text: str) -> str:
    """What `sha256sum` says of the text: enough to prove later which one it was."""
    return f"sha256 {hashlib.sha256(text.encode()).hexdigest()}"


def note_entries(
    request: HttpRequest, entry_ids: Iterable[int], said: str, *, is_deletion: bool = False
) -> None:
    """One line for each entry, which may be gone already. Its question does not enter the log: it is somebody's."""
    note_each(request, dict.fromkeys(entry_ids, said), is_deletion=is_deletion)


def note_each(request: HttpRequest, said: Mapping[int, str], *, is_deletion: bool = False) -> None:
    """The same with a text of its own for each entry's id."""
    LogEntry.objects.bulk_create(
        [
            _line(_author(request), CacheEntry, str(entry_id), _said(request, text), is_deletion)
            for entry_id, text in said.items()
        ]
    )


def note_many(request: HttpRequest, model: type[Model], said: str, *, is_deletion: bool = False) -> None:
    """One line for a change of many rows that were chosen by what they have in common."""
    _line(_author(request), model, None, _said(request, said), is_deletion).save()


def note_row(request: HttpRequest, row: Model, said: str, *, is_deletion: bool = False) -> None:
    """One line for what was done at a row."""
    _line(_author(request), type(row), str(row.pk), _said(request, said), is_deletion).save()


def note_by_itself(row: Model, said: str) -> None:
    """One line for a change that nobody asked for. The log wants an author: an account that nobody can sign in with."""
    _line(_nobody().pk, type(row), str(row.pk), said, is_deletion=False).save()


def _author(request: HttpRequest) -> int:
    assert request.user.pk is not None, "the admin lets nobody in who is not signed in"
    return request.user.pk


def _said(request: HttpRequest, text: str) -> str:
    """With what the author used, where a door says so: a door for programs names the key."""
    via = getattr(request, "audit_via", "")
    return f"{text} ({via})" if via else text


def _nobody() -> AbstractBaseUser:
    people: Any = get_user_model()._default_manager
    try:
        with transaction.atomic():
            made: AbstractBaseUser = people.create_user(NOBODY, is_active=False)
            return made
    except IntegrityError:
        known: AbstractBaseUser = people.get_by_natural_key(NOBODY)
        return known


def _line(author: int, model: type[Model], key: str | None, said: str, is_deletion: bool) -> LogEntry:
    name = str(model._meta.model_name)
    return LogEntry(
        user_id=author,
        content_type=ContentType.objects.get_for_model(model),
        object_id=key,
        object_repr=f"{name} {key}" if key else name,
        action_flag=DELETION if is_deletion else CHANGE,
        change_message=said,
    )


def _shown(value: Any) -> str:
    if isinstance(value, list | tuple):
        value = ", ".join(map(str, value))
    text = str(value)
    return text if len(text) <= MAX_SHOWN_CHARS else hashed(text)
