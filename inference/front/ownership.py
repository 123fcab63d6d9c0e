"""Whose KV is whose: keys of prefixes and of conversation heads, from a server secret and the owner's names.

Knows HMAC. The core sees keys only, so two owners can never meet by choosing names.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets

from inference.errors import InvalidRequest
from inference.types import Owner


def new_secret() -> str:
    """For an engine that was given none: nothing kept before is found again, which is only slower."""
    return secrets.token_hex(32)


def secret_id(secret: str) -> str:
    """Tells two secrets apart and gives neither away."""
    return hmac.new(secret.encode(), b"id", hashlib.sha256).hexdigest()[:32]


class OwnerKeys:
    """An empty secret makes a new one."""

    def __init__(self, secret: str) -> None:
        self._secret = (secret or new_secret()).encode()

    def salt(self, owner: Owner) -> bytes:
        return self._key(b"salt", owner.tenant, owner.user)

    def conversation(self, owner: Owner) -> bytes:
        """Empty when the request belongs to no conversation."""
        if not owner.conversation:
            return b""
        return self._key(b"conversation", owner.tenant, owner.user, owner.conversation)

    def _key(self, purpose: bytes, *names: str) -> bytes:
        if any("\0" in name for name in names):
            raise InvalidRequest("owner names must not contain NUL")
        message = b"\0".join([purpose, *(name.encode() for name in names)])
        return hmac.new(self._secret, message, hashlib.sha256).digest()
