"""People with open sessions, made at once: the doors have brakes, which a run of many tests would meet.

Knows Django's sessions; the doors themselves are tested by walking through them.
"""

from __future__ import annotations

from playwright.sync_api import BrowserContext

from tests.livesite import LiveSite

MAKE_SESSIONS = """
from importlib import import_module
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from chatsite.accounts.models import User
for number in range({num}):
    user = User.objects.create_user(f"Ada-{{number}}" if number else "Ada")
    session = import_module(settings.SESSION_ENGINE).SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.create()
    print("session", session.session_key)
"""


def signed_in(site: LiveSite, num: int) -> list[str]:
    """The session keys of `num` new people."""
    lines = site.manage("shell", "--verbosity", "0", "--command", MAKE_SESSIONS.format(num=num)).splitlines()
    return [line.split()[1] for line in lines if line.startswith("session ")]


def let_in(context: BrowserContext, site: LiveSite, session: str) -> None:
    """Whoever the session belongs to is signed in in this browser."""
    context.add_cookies([{"name": "sessionid", "value": session, "url": site.url}])
