"""How the settings of a provider are read: mappings of names, and which URLs may be asked. Pure functions."""

from __future__ import annotations

from urllib.parse import urlsplit

from chatsite.hosts import is_loopback


def pairs(mapping: str) -> list[tuple[str, str]]:
    """`theirs=ours, ...` in order. Raises ValueError for what is no pair."""
    found = []
    for entry in filter(None, (part.strip() for part in mapping.split(","))):
        theirs, sign, ours = (part.strip() for part in entry.partition("="))
        if not (sign and theirs and ours):
            raise ValueError(f"{entry!r} is not of the form theirs=ours")
        found.append((theirs, ours))
    return found


def origin_of(url: str) -> str:
    """scheme://host:port; "" for what has none."""
    try:
        parts = urlsplit(url)
        port = parts.port or {"https": 443, "http": 80}.get(parts.scheme)
    except ValueError:
        return ""
    return (
        f"{parts.scheme}://{parts.hostname}:{port}"
        if parts.hostname and port and "@" not in parts.netloc
        else ""
    )


def is_safe(origin: str) -> bool:
    """By https; without it on this machine only."""
    parts = urlsplit(origin)
    return parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or ""))
