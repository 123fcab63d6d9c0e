"""Signing in by an OpenID Connect provider: off until CHAT_OIDC_ISSUER is set.

What is said here the whole site may ask. `provider` brings the libraries of the protocol, a seventh of a start, and is
loaded when somebody goes to one.
"""

from __future__ import annotations

from django.conf import settings

# A mark in the session of those who came this way.
CAME_BY = "oidc"


def is_configured() -> bool:
    return bool(settings.CONFIG.oidc_issuer)
