"""The brake on guessing and on mass sign-up: bounded numbers per address and name, and per address.

Counted in the database, so that it holds for every process. The pair of address and name is what is slowed down: a
stranger's tries never lock the rightful user out at another address. Expired rows are removed as new ones come.
"""

from __future__ import annotations

import hashlib
import ipaddress
from datetime import timedelta

from django.conf import settings
from django.db.models import F
from django.http import HttpRequest
from django.utils import timezone

from chatsite.accounts.models import SignInFailures

WINDOW = timedelta(minutes=15)
MOST_PER_NAME = 5
MOST_PER_ADDRESS = 50
# An office behind one address starts in one morning; a script makes thousands.
MOST_NEW_PER_ADDRESS = 60
ANY_NAME = ""


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


def is_braked(address: str, name: str) -> bool:
    """True while no further try is checked."""
    return _count(address, name) >= MOST_PER_NAME or _count(address, ANY_NAME) >= MOST_PER_ADDRESS


def count_failure(address: str, name: str) -> None:
    """Books one failed try."""
    for one in (name, ANY_NAME):
        _book(address, one)


def may_enter_anew(address: str, door: str) -> bool:
    """False while too many new users came from this address through `door` (sign-up, guest)."""
    return _count(address, door) < MOST_NEW_PER_ADDRESS


def count_new(address: str, door: str) -> None:
    """Books one new user; failed tries are not touched, so that a busy office can still sign in."""
    _book(address, door)


def forget_failures(address: str, name: str) -> None:
    """The right password was given: the name's count starts anew, the address's stays."""
    SignInFailures.objects.filter(address=address, name_sha256=_digest(name)).delete()


def forget_name(name: str) -> int:
    """Drops what was counted of a name, at all addresses; how many counts there were."""
    return SignInFailures.objects.filter(name_sha256=_digest(name)).delete()[0]


def _book(address: str, name: str) -> None:
    SignInFailures.objects.filter(window_start__lt=timezone.now() - WINDOW).delete()
    row, is_new = SignInFailures.objects.get_or_create(
        address=address, name_sha256=_digest(name), defaults={"count": 1}
    )
    if not is_new:
        SignInFailures.objects.filter(pk=row.pk).update(count=F("count") + 1)


def _count(address: str, name: str) -> int:
    rows = SignInFailures.objects.filter(
        address=address, name_sha256=_digest(name), window_start__gte=timezone.now() - WINDOW
    )
    return rows.values_list("count", flat=True).first() or 0


def _digest(name: str) -> str:
    return hashlib.sha256(name.strip().lower().encode()).hexdigest()
