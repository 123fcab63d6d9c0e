"""Who may administrate the cache: staff, in a session or by a key with the scope `cache-admin`, as far as Django's
permissions go. A key of anybody else opens nothing, whatever its scopes.

Knows HTTP requests; used by django-ninja.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from asgiref.sync import sync_to_async
from django import forms
from django.core.exceptions import NON_FIELD_ERRORS
from django.db import connections
from django.http import HttpRequest

from chatsite.accounts.auth import SessionOrKey
from chatsite.accounts.models import ApiKey, User
from chatsite.chat.turn import Caller
from chatsite.db import run_in_db
from chatsite.errors import StaffOnly
from chatsite.v1.errors import ApiError

P = ParamSpec("P")
R = TypeVar("R")


class _Staff(SessionOrKey):
    """Leaves the person in `request.user`, where permissions and the audit log look, with the key it came by."""

    async def __call__(self, request: HttpRequest) -> Caller | None:
        caller = await super().__call__(request)
        if caller is not None:
            request.user, request.audit_via = await run_in_db(_person, caller)  # type: ignore[attr-defined]
        return caller


STAFF = _Staff(ApiKey.Scope.CACHE_ADMIN)


def allow(request: HttpRequest, permission: str) -> None:
    """Raises StaffOnly for staff without this permission for the cache. In a database thread."""
    if not request.user.has_perm(f"semcache.{permission}"):
        raise StaffOnly(f"This needs the permission semcache.{permission}.")


def refused(form: forms.BaseForm) -> ApiError:
    """The first thing that is wrong with a form, as an error of the API.

    404 for a row that is not there, 409 for a name that another one has.
    """
    name, errors = next(iter(form.errors.items()))
    param = None if name == NON_FIELD_ERRORS else name
    said = " ".join(map(str, errors))
    code = form.errors.as_data()[name][0].code
    if code == "invalid_choice":
        return ApiError(404, "not_found", f"There is no such {name}.", param=param)
    if code == "unique":
        return ApiError(409, "name_taken", said, param=param)
    return ApiError(400, "invalid_value", said, param=param)


async def in_thread(work: Callable[P, R], *args: P.args, **named: P.kwargs) -> R:
    """`work(...)` on a thread from which coroutines can be run on this loop: what asks the engine in the middle.

    Not one of the few database threads, which such work itself waits for.
    """

    def and_close() -> R:
        try:
            return work(*args, **named)
        finally:
            for connection in connections.all(initialized_only=True):
                connection.close()

    return await sync_to_async(and_close, thread_sensitive=False)()


def _person(caller: Caller) -> tuple[User, str]:
    user = User.objects.get(pk=caller.user_id)
    if not user.is_staff:
        raise StaffOnly("The cache is administrated by staff.")
    if caller.api_key is None:
        return user, ""
    prefix = ApiKey.objects.values_list("prefix", flat=True).get(pk=caller.api_key)
    return user, f"by key {prefix}"
