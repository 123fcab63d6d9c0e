"""What open connections were let in by, and whether it still holds: a key or a session, and the footing of its user.

A request is checked when it comes; sockets and streams live on. Each process asks the database once a second about all
of its open ones together, so whatever ends a right (sign-out, a new password, a revoked key, an account switched off,
staff who are none any more) needs to tell nobody. Knows rows; does not know what a connection carries.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from importlib import import_module
from uuid import UUID

from django.conf import settings
from django.db import Error as DatabaseError
from django.db.models import Q
from django.utils import timezone

from chatsite.accounts import keys
from chatsite.accounts.models import ApiKey, User
from chatsite.chat.turn import Caller
from chatsite.db import run_in_db
from chatsite.errors import AccessEnded

logger = logging.getLogger(__name__)

# Promised is an end within two seconds; a query of a few milliseconds, however many connections there are.
RECHECK_EVERY_S = 1.0


@dataclass(frozen=True, slots=True)
class Footing:
    """What of a user's row a session was opened with; a socket whose user is somebody else now opens anew."""

    password: str
    is_staff: bool
    is_superuser: bool


@dataclass(frozen=True, slots=True)
class Grant:
    """By what somebody was let in: a key, or a session."""

    user_id: int
    api_key: UUID | None = None
    session: str = ""
    footing: Footing | None = None

    @classmethod
    def of_key(cls, caller: Caller) -> Grant:
        return cls(caller.user_id, api_key=caller.api_key)

    @classmethod
    def of_session(cls, user: User, session_key: str) -> Grant:
        footing = Footing(user.password, user.is_staff, user.is_superuser)
        return cls(user.pk, session=session_key, footing=footing)


def still_held(grants: Collection[Grant]) -> set[Grant]:
    """Those of `grants` by which somebody would be let in now, too."""
    now = timezone.now()
    by_key = {grant.api_key for grant in grants if grant.api_key is not None}
    good = keys.usable(ApiKey.objects.filter(pk__in=by_key)).values_list("pk", flat=True)
    good_keys = set(good) if by_key else set()
    by_session = {grant.session for grant in grants if grant.session}
    model = import_module(settings.SESSION_ENGINE).SessionStore.get_model_class()
    open_ones = model.objects.filter(session_key__in=by_session, expire_date__gt=now)
    sessions = set(open_ones.values_list("session_key", flat=True)) if by_session else set()
    footings = _footings({grant.user_id for grant in grants})
    return {
        grant
        for grant in grants
        if (grant.api_key in good_keys if grant.api_key is not None else grant.session in sessions)
        and grant.user_id in footings
        and grant.footing in (None, footings[grant.user_id])
    }


def _footings(users: Collection[int]) -> dict[int, Footing]:
    """Of those who are welcome (as `callers.is_welcome` has it)."""
    present = Q(guest_until__isnull=True) | Q(guest_until__gt=timezone.now())
    rows = User.objects.filter(present, pk__in=users, is_active=True)
    columns = rows.values_list("pk", "password", "is_staff", "is_superuser")
    return {pk: Footing(password, staff, superuser) for pk, password, staff, superuser in columns}


class Watch:
    """The open connections of this process. A callback is called once, on the loop, when its grant has ended."""

    def __init__(self) -> None:
        self._ids = itertools.count()
        self._watched: dict[int, tuple[Grant, Callable[[], None]]] = {}

    def __len__(self) -> int:
        return len(self._watched)

    def add(self, grant: Grant, on_end: Callable[[], None]) -> Callable[[], None]:
        """Watches until the function that it gives is called."""
        number = next(self._ids)
        self._watched[number] = (grant, on_end)

        def forget() -> None:
            self._watched.pop(number, None)

        return forget

    @contextmanager
    def watching(self, grant: Grant, on_end: Callable[[], None]) -> Iterator[None]:
        forget = self.add(grant, on_end)
        try:
            yield
        finally:
            forget()

    @asynccontextmanager
    async def held(self, grant: Grant) -> AsyncIterator[None]:
        """Cancels the block when the grant ends, and raises AccessEnded from it."""
        task = asyncio.current_task()
        assert task is not None
        num_before = task.cancelling()
        has_ended = False

        def end() -> None:
            nonlocal has_ended
            has_ended = True
            task.cancel()

        with self.watching(grant, end):
            try:
                yield
            except asyncio.CancelledError:
                # Somebody else may want this task to end as well; then it is theirs.
                if has_ended and task.uncancel() <= num_before:
                    raise AccessEnded from None
                raise

    async def recheck(self) -> None:
        """Asks once about all of them, and ends what is held no more."""
        watched = dict(self._watched)
        if not watched:
            return
        held = await run_in_db(still_held, {grant for grant, _ in watched.values()})
        for number, (grant, on_end) in watched.items():
            if grant not in held and self._watched.pop(number, None) is not None:
                on_end()

    async def recheck_forever(self) -> None:
        """While the database is away nothing can be revoked either; what is open stays open."""
        while True:
            await asyncio.sleep(RECHECK_EVERY_S)
            try:
                await self.recheck()
            except DatabaseError as error:
                logger.warning("open connections can't be checked, the database is away: %s", error)
            except Exception:
                logger.exception("checking open connections failed")


watch = Watch()
