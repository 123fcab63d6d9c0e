"""Whose KV is whose: keys of prefixes and of conversation heads, from a server secret and the owner's names.

Knows HMAC. The core sees keys only, so two owners can never meet by choosing names.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets

from inference.errors import InvalidRequest
from inference.types import Owner


class OwnerKeys:
    """An empty secret makes a new one: nothing kept before is found again, which is only slower."""

    def __init__(self, secret: str) -> None:
        self._secret = secret.encode() or secrets.token_bytes(32)

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
