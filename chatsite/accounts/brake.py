"""The brake on guessing and on mass sign-up: bounded numbers per address and name, per address, and per name.

Counted in the database, so that it holds for every process, and before a password is checked, so that tries at the same
moment count as well. A stranger's tries at one address never lock the rightful user out at another; those from very
many addresses lock out only browsers in which the user has never signed in. Expired rows go as new ones come.
"""

from __future__ import annotations

import hashlib
import ipaddress
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core import signing
from django.db import connection
from django.db.models import F
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from chatsite.accounts.models import SignInFailures

WINDOW = timedelta(minutes=15)
MOST_PER_NAME = 5
MOST_PER_ADDRESS = 50
# From all addresses together; a browser in which the user has signed in before is not asked.
MOST_PER_NAME_ANYWHERE = 100
# An office behind one address starts in one morning; a script makes thousands.
MOST_NEW_PER_ADDRESS = 60
# A class that reads the same page from behind one address; secrets of 256 bits need no tighter bound.
MOST_LOOKS_PER_ADDRESS = 600
ANY_NAME = ""
ANYWHERE = "*"
KNOWN_FOR_S = 365 * 86_400
BOOK = """
    INSERT INTO accounts_signinfailures AS held (address, name_sha256, count, window_start)
    VALUES (%(address)s, %(name)s, 1, %(now)s)
    ON CONFLICT (address, name_sha256) DO UPDATE SET
        count = CASE WHEN held.window_start < %(cutoff)s THEN 1 ELSE held.count + 1 END,
        window_start = CASE WHEN held.window_start < %(cutoff)s THEN %(now)s ELSE held.window_start END
    RETURNING count
"""


def client_address(request: HttpRequest) -> str:
    """Where the request comes from: the proxy's word only where the proxy is trusted; IPv6 by its /64."""
    address = request.META.get("REMOTE_ADDR") or "unknown"
    if settings.CONFIG.trust_proxy:
        # The last entry is the one our own proxy wrote; those before it are the client's own words.
        address = request.headers.get("X-Forwarded-For", address).rpartition(",")[2].strip()
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return "unknown"
    if parsed.version == 6:
        return str(ipaddress.ip_network((parsed, 64), strict=False).network_address)
    return str(parsed)


def may_try(address: str, name: str, *, is_known: bool = False) -> bool:
    """Books a try as failed; False when it must not even be checked. `is_known`: by a browser of the user's."""
    limits = [(address, name, MOST_PER_NAME), (address, ANY_NAME, MOST_PER_ADDRESS)]
    if not is_known:
        limits.append((ANYWHERE, name, MOST_PER_NAME_ANYWHERE))
    # One after the other: what is refused at its own address must not count against the name everywhere.
    return all(_book(where, who) <= most for where, who, most in limits)


def may_enter_anew(address: str, door: str) -> bool:
    """False while too many new users came from this address through `door` (sign-up, guest)."""
    return _count(address, door) < MOST_NEW_PER_ADDRESS


def may_look(address: str, door: str) -> bool:
    """Books a look by somebody who is not signed in; False after too many from this address."""
    return _book(address, door) <= MOST_LOOKS_PER_ADDRESS


def count_new(address: str, door: str) -> None:
    """Books one new user; failed tries are not touched, so that a busy office can still sign in."""
    _book(address, door)


def forget_failures(address: str, name: str) -> None:
    """The right password was given: the name's count starts anew, and this try is no failure elsewhere either."""
    SignInFailures.objects.filter(address=address, name_sha256=_digest(name)).delete()
    for where, who in ((address, ANY_NAME), (ANYWHERE, name)):
        mine = SignInFailures.objects.filter(address=where, name_sha256=_digest(who), count__gt=0)
        mine.update(count=F("count") - 1)


def is_known(request: HttpRequest, name: str) -> bool:
    """Whether somebody signed in under this name in this browser before."""
    try:
        given = signing.loads(
            request.COOKIES.get(settings.KNOWN_COOKIE_NAME, ""), salt=__name__, max_age=KNOWN_FOR_S
        )
    except signing.BadSignature:
        return False
    return bool(given == _digest(name))


def remember_browser(response: HttpResponse, name: str) -> None:
    """Lets the browser show later that the user has been here."""
    response.set_cookie(
        settings.KNOWN_COOKIE_NAME,
        signing.dumps(_digest(name), salt=__name__),
        max_age=KNOWN_FOR_S,
        httponly=True,
        samesite="Lax",
        secure=settings.SESSION_COOKIE_SECURE,
    )


def forget_name(name: str) -> int:
    """Drops what was counted of a name, at all addresses; how many counts there were."""
    return SignInFailures.objects.filter(name_sha256=_digest(name)).delete()[0]


def _book(address: str, name: str) -> int:
    """The count with this one, in one statement."""
    now = timezone.now()
    cutoff = now - WINDOW
    SignInFailures.objects.filter(window_start__lt=cutoff).delete()
    values: dict[str, Any] = {"address": address, "name": _digest(name), "now": now, "cutoff": cutoff}
    with connection.cursor() as cursor:
        cursor.execute(BOOK, values)
        return int(cursor.fetchone()[0])


def _count(address: str, name: str) -> int:
    rows = SignInFailures.objects.filter(
        address=address, name_sha256=_digest(name), window_start__gte=timezone.now() - WINDOW
    )
    return rows.values_list("count", flat=True).first() or 0


def _digest(name: str) -> str:
    return hashlib.sha256(name.strip().lower().encode()).hexdigest()
