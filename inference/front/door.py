"""Where the door stands: a private unix socket, or TCP with TLS and a token. Nothing else is opened.

Knows addresses, file modes and credentials. Does not know what is said through the door.
"""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import grpc

from inference.config import EngineConfig

MAX_SOCKET_PATH_BYTES = 107  # sun_path of Linux, without its NUL
PRIVATE_UMASK = 0o177


class DoorError(Exception):
    """The configured address cannot be served; the text says what to change."""


def open_door(server: grpc.aio.Server, config: EngineConfig) -> None:
    """Binds the configured address. Raises DoorError."""
    if "," in config.address:  # the site's processes take several
        raise DoorError(f"ENGINE_ADDRESS={config.address} names several; an engine listens on one")
    if config.address.startswith("unix:"):
        _open_unix(server, Path(config.address.removeprefix("unix:")).absolute())
    else:
        _open_tls(server, config)


def _open_unix(server: grpc.aio.Server, path: Path) -> None:
    if len(os.fsencode(path)) > MAX_SOCKET_PATH_BYTES:
        raise DoorError(
            f"ENGINE_ADDRESS: a socket path ends at {MAX_SOCKET_PATH_BYTES} bytes, this one is longer: {path}"
        )
    _make_private_folder(path.parent)
    _remove_stale(path)
    before = os.umask(PRIVATE_UMASK)  # between bind and chmod nobody else may connect either
    try:
        server.add_insecure_port(f"unix:{path}")
        os.chmod(path, 0o600)
    except (RuntimeError, OSError) as error:
        raise DoorError(f"ENGINE_ADDRESS: {path} cannot be opened: {error}") from error
    finally:
        os.umask(before)


def _make_private_folder(folder: Path) -> None:
    """Made by us it is 0700; a folder that others may write to is refused, because they could replace the socket."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    mode = folder.stat().st_mode
    if mode & (stat.S_IWGRP | stat.S_IWOTH) and not mode & stat.S_ISVTX:
        raise DoorError(f"ENGINE_ADDRESS: others may write to {folder}; use a folder of mode 0700")


def _remove_stale(path: Path) -> None:
    if not path.exists():
        return
    if not stat.S_ISSOCK(path.stat().st_mode):
        raise DoorError(f"ENGINE_ADDRESS: {path} exists and is no socket")
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
            return
        except OSError as error:
            raise DoorError(f"ENGINE_ADDRESS: {path} is in use: {error}") from error
    raise DoorError(f"ENGINE_ADDRESS: an engine listens on {path} already")


def _open_tls(server: grpc.aio.Server, config: EngineConfig) -> None:
    missing = [
        name
        for name, value in (
            ("ENGINE_TOKEN", config.token), ("ENGINE_TLS_CERT", config.tls_cert), ("ENGINE_TLS_KEY", config.tls_key)
        )
        if not value
    ]  # fmt: skip
    if missing:
        raise DoorError(f"ENGINE_ADDRESS={config.address} is TCP and needs {', '.join(missing)}")
    try:
        key, certificate = Path(config.tls_key).read_bytes(), Path(config.tls_cert).read_bytes()
        server.add_secure_port(config.address, grpc.ssl_server_credentials([(key, certificate)]))
    except (RuntimeError, OSError) as error:
        raise DoorError(f"ENGINE_ADDRESS={config.address} cannot be opened: {error}") from error
