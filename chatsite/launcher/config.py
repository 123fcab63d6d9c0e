"""The launcher's own settings and nothing else: where data lives, which port, how processes share the cores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from inference.settings import read, setting


@dataclass(frozen=True, slots=True)
class LauncherConfig:
    """How one installation is started on this machine. Read once from the environment."""

    data_dir: str = setting("DATA_DIR", "data", "Folder for everything that is kept on disk.")
    port: int = setting("PORT", 8000, "Port of the web server.", between=(1, 65535))
    nice: int = setting(
        "LAUNCHER_NICE",
        5,
        "Nice steps of every process except the engine core, so that decoding is never pushed aside.",
        between=(0, 19),
    )
    database_url: str = setting(
        "DATABASE_URL", "", "PostgreSQL with pgvector; empty starts the embedded one.", is_secret=True
    )
    redis_url: str = setting(
        "REDIS_URL", "", "Redis-protocol server; empty starts the embedded one.", is_secret=True
    )
    engine_address: str = setting(
        "ENGINE_ADDRESS",
        "",
        "A running engine, or several, comma separated; empty starts one beside the web server.",
    )
    secret_key: str = setting(
        "SECRET_KEY", "", "Signs sessions; empty generates one and keeps it.", is_secret=True
    )
    engine_salt_key: str = setting(
        "ENGINE_SALT_KEY", "", "Key of the prefix salts; empty generates one and keeps it.", is_secret=True
    )
    admin_password: str = setting(
        "ADMIN_PASSWORD",
        "",
        "Password of the first administrator; empty generates one and keeps it.",
        is_secret=True,
    )

    @property
    def data_path(self) -> Path:
        return Path(self.data_dir).expanduser().resolve()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"


def read_config(environ: Mapping[str, str] | None = None) -> LauncherConfig:
    return read(LauncherConfig, environ)
