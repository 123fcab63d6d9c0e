"""Where the upstream is: one URL, as it is called and as it may be shown.

Knows URLs and what a header may hold. Imports nothing heavy: the front checks the settings with it before it starts
anything.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from inference.config import EngineConfig
from inference.settings import SettingError

_HEADER_NAME = re.compile(r"[\w!#$%&'*+.^`|~-]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Address:
    """`root` may hold a password and is never shown; /metrics lies below it, the API below /v1."""

    root: str = field(repr=False)
    shown: str

    @property
    def api(self) -> str:
        return f"{self.root}/v1"


def check_upstream(config: EngineConfig) -> None:
    """Raises SettingError for what no request could be made of."""
    parse_address(config.upstream)
    if not (config.upstream_key.isascii() and config.upstream_key.isprintable()):
        raise SettingError(
            "ENGINE_UPSTREAM_KEY has characters that no header can hold: is there a line break?"
        )
    if not _HEADER_NAME.fullmatch(config.upstream_session_header):
        raise SettingError(
            f"ENGINE_UPSTREAM_SESSION_HEADER={config.upstream_session_header!r} is no name of a header"
        )


def parse_address(url: str) -> Address:
    """`http://host:8000` and `http://host:8000/v1/` mean the same. Raises SettingError."""
    url = url.strip()
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:  # its text may hold a piece of the password
        raise SettingError("ENGINE_UPSTREAM is no URL: the host, the port or a bracket is wrong") from None
    is_clean = url.isprintable() and " " not in url and not (parts.query or parts.fragment)
    if parts.scheme not in ("http", "https") or not parts.hostname or not is_clean:
        raise SettingError(
            "ENGINE_UPSTREAM is a URL like http://host:8000, without query, fragment and blanks"
        )
    path = parts.path.rstrip("/").removesuffix("/v1").rstrip("/")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return Address(f"{parts.scheme}://{parts.netloc}{path}", f"{parts.scheme}://{host}{port}{path}")
