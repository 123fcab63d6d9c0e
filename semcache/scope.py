"""The scope: a digest of everything that must be equal before one question's answer may serve another.

Pure: tenants, owners, models and parameters are opaque strings here. Scope is a hard filter and never part of
the embedded text, so alike questions of two owners stay apart however alike they are. Which embedder made a vector is
no part of it: an answer is found by its words under any embedder, by meaning under the one that made its vector.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass, fields

from semcache.normalize import sha256_of

SCOPE_VERSION = "2"


@dataclass(frozen=True, slots=True)
class Scope:
    """`tenant` and `owner` are already widened by `widened`; every other field narrows."""

    sharing: str
    tenant: str
    owner: str
    model: str
    model_revision: str
    system_prompt_sha256: str
    parameters: str
    language: str
    epoch: str

    def digest(self) -> str:
        """64 hex digits. Field names are hashed too: moving a value to another field is another scope."""
        names = tuple(field.name for field in fields(self))
        return sha256_of("scope", SCOPE_VERSION, *names, *astuple(self))


def widened(sharing: str, tenant: str, owner: str) -> tuple[str, str]:
    """(tenant, owner) as they enter the scope under a rule's sharing: "" where the rule shares across them.

    `promoted` entries stay their owner's until something promotes them. An unknown sharing is the owner's own.
    """
    if sharing == "public":
        return "", ""
    if sharing == "tenant":
        return tenant, ""
    return tenant, owner
