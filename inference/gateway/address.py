"""Where the upstream is: one URL, as it is called and as it may be shown.

Knows URLs. Imports nothing heavy: the front checks the setting with it before it starts anything.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from inference.settings import SettingError


@dataclass(frozen=True, slots=True)
class Address:
    """`root` may hold a password and is never shown; /metrics lies below it, the API below /v1."""

    root: str = field(repr=False)
    shown: str

    @property
    def api(self) -> str:
        return f"{self.root}/v1"


def parse_address(url: str) -> Address:
    """`http://host:8000` and `http://host:8000/v1/` mean the same. Raises SettingError."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError as error:
        raise SettingError(f"ENGINE_UPSTREAM is no URL: {error}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise SettingError("ENGINE_UPSTREAM is a URL like http://host:8000, without query and fragment")
    path = parts.path.rstrip("/").removesuffix("/v1").rstrip("/")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return Address(f"{parts.scheme}://{parts.netloc}{path}", f"{parts.scheme}://{host}{port}{path}")
