"""The scope: a digest of everything that must be equal before one question's answer may serve another.

Pure: tenants, owners, models and parameters are opaque strings here. Scope is a hard filter and never part of
the embedded text, so alike questions of two owners stay apart however alike they are. Which embedder made a vector is
no part of it: an answer is found by its words under any embedder, by meaning under the one that made its vector.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from semcache.text.normalize import sha256_of

SCOPE_VERSION = "2"


@dataclass(frozen=True, slots=True)
class Scope:
    """`tenant` and `owner` are "" where the scope is shared across them (`shared`); every other field narrows."""

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
        return sha256_of("scope", SCOPE_VERSION, *names, *(getattr(self, name) for name in names))


def shared(own: Scope, sharing: str) -> Scope | None:
    """The scope in which others find an answer of this owner under a rule's sharing; None where nobody else does.

    What is to be promoted gets there only when enough people asked. An unknown sharing is the owner's own.
    """
    match sharing:
        case "public" | "promoted":
            return replace(own, sharing="public", tenant="", owner="")
        case "tenant":
            return replace(own, sharing="tenant", owner="")
        case _:
            return None
