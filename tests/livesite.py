"""The real site for a test: its own database, a scripted engine, and the web server as a child process.

Knows how to start and end them; what is asked over HTTP is the test's business.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import httpx2
import psycopg

from tests.patience import PATIENCE_S

PROJECT = Path(__file__).resolve().parents[1]
MIGRATED = "TEST_MIGRATED"  # a server and the database on it that is copied


@dataclass(frozen=True, slots=True)
class LiveSite:
    """A running site. `environ` is what its processes were started with."""

    url: str
    environ: dict[str, str]
    folder: Path
    web: subprocess.Popen[bytes]
    engines: tuple[subprocess.Popen[bytes], ...]

    @property
    def engine(self) -> subprocess.Popen[bytes]:
        """The only one, or the first."""
        return self.engines[0]

    def manage(self, *arguments: str, **variables: str) -> str:
        """The output of `manage.py ARGUMENTS` in the site's environment. Raises RuntimeError."""
        return _manage(self.environ | variables, *arguments)

    def user(self, name: str, **columns: object) -> int:
        """The id of user `name`, made when there is none; `columns` differ from an ordinary person's."""
        if found := self.sql("SELECT id FROM accounts_user WHERE username = %s", name):
            return int(str(found[0][0]))
        values = {
            "username": name, "password": "!", "first_name": "", "last_name": "", "email": "", "is_staff": False,
            "is_superuser": False, "is_active": True, "date_joined": datetime.now(UTC), "is_guest": False,
            "tenant_id": self.sql("SELECT id FROM accounts_tenant WHERE is_default")[0][0],
        } | columns  # fmt: skip
        places = ", ".join(["%s"] * len(values))
        made = self.sql(
            f"INSERT INTO accounts_user ({', '.join(values)}) VALUES ({places}) RETURNING id",
            *values.values(),
        )
        return int(str(made[0][0]))

    def key(self, user: str, *scopes: str) -> str:
        """A new API key of `user`, written as the product writes it, without the start of one more process."""
        secret = "rill_" + secrets.token_urlsafe(32)
        self.sql(
            """INSERT INTO accounts_apikey (id, user_id, tenant_id, name, prefix, sha256, scopes, created_at)
               SELECT gen_random_uuid(), id, tenant_id, 'test', %s, %s, %s, now() FROM accounts_user WHERE id = %s""",
            secret[:13], hashlib.sha256(secret.encode()).hexdigest(), list(scopes or ("chat", "embeddings")),
            self.user(user),
        )  # fmt: skip
        return secret

    def sql(self, query: str, *parameters: object) -> list[tuple[object, ...]]:
        with psycopg.connect(self.environ["DATABASE_URL"], autocommit=True) as connection:
            cursor = connection.execute(query, parameters)
            return cursor.fetchall() if cursor.description else []

    def log(self) -> str:
        return (self.folder / "web.log").read_text()


@dataclass(slots=True)
class _Children:
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, argv: Sequence[str], environ: dict[str, str], log: Path) -> subprocess.Popen[bytes]:
        with log.open("ab") as output:
            process = subprocess.Popen(argv, env=environ, cwd=PROJECT, stdout=output, stderr=output)
        self.processes.append(process)
        return process

    def stop(self) -> None:
        for process in reversed(self.processes):
            process.terminate()
            try:
                process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextmanager
def live_site(
    name: str,
    engine_module: Sequence[str] = ("inference.testing",),
    models: Sequence[str] = ("",),
    **variables: str,
) -> Iterator[LiveSite]:
    """A site of its own, ready to answer; `variables` are settings of its processes.

    `engine_module` is the engine that is started, with its flags: one for each of `models`, which are their names.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rill-site-")))
        _lend_kernels(folder)
        port = free_port()
        addresses = [f"unix:{folder}/e{number}.sock" for number in range(len(models))]
        environ = os.environ | {
            "DATABASE_URL": stack.enter_context(new_database(name)),
            "DATA_DIR": str(folder),
            "ENGINE_ADDRESS": ",".join(addresses),
            "PORT": str(port),
            "CHAT_GUESTS": "true",
            **variables,
        }
        children = _Children()
        stack.callback(children.stop)
        engines = [
            children.start(
                [sys.executable, "-m", *engine_module],
                {"ENGINE_MODEL_NAME": model, **environ, "ENGINE_ADDRESS": address},
                folder / "engine.log",
            )
            for address, model in zip(environ["ENGINE_ADDRESS"].split(","), models, strict=True)
        ]
        web = children.start([sys.executable, "manage.py", "serve"], environ, folder / "web.log")
        site = LiveSite(f"http://127.0.0.1:{port}", environ, folder, web, tuple(engines))
        _wait_until_ready(site)
        yield site


def _lend_kernels(folder: Path) -> None:
    """A real engine computes as the product's does: with what `make models` compiled, where it did."""
    kernels = Path(os.environ.get("DATA_DIR", "data")).absolute() / "kernels"
    if kernels.is_dir():
        (folder / "kernels").symlink_to(kernels)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@cache
def migrated(server: str) -> str:
    """A database that was migrated once for all sites of this process and of those that it starts: a copy takes a tenth
    of the time."""
    known, _, template = os.environ.get(MIGRATED, "").rpartition(" ")
    if known == server:
        return template
    template = f"sites_{os.getpid()}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {template}")
    atexit.register(_drop, server, template)
    _manage(os.environ | {"DATABASE_URL": _at(server, template)}, "migrate", "--verbosity", "0")
    os.environ[MIGRATED] = f"{server} {template}"
    return template


def _drop(server: str, database: str) -> None:
    """Servers that were started for this run may be gone by now, and the database with them."""
    with suppress(psycopg.OperationalError), psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {database} WITH (FORCE)")


def _at(server: str, database: str) -> str:
    return urlunsplit(urlsplit(server)._replace(path=f"/{database}"))


@contextmanager
def new_database(name: str) -> Iterator[str]:
    """A new database on the test server, migrated and otherwise empty; its URL."""
    server = os.environ["DATABASE_URL"]
    database, template = f"{name}_{os.getpid()}", migrated(server)
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {database} TEMPLATE {template}")
        try:
            yield _at(server, database)
        finally:
            connection.execute(f"DROP DATABASE {database} WITH (FORCE)")


def _manage(environ: dict[str, str], *arguments: str) -> str:
    argv = [sys.executable, "manage.py", *arguments]
    done = subprocess.run(argv, env=environ, cwd=PROJECT, check=False, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"manage.py {' '.join(arguments)} failed:\n{done.stderr}")
    return done.stdout


def _wait_until_ready(site: LiveSite) -> None:
    give_up_at = time.monotonic() + PATIENCE_S
    while time.monotonic() < give_up_at:
        for process, log in ((site.web, "web.log"), *((engine, "engine.log") for engine in site.engines)):
            if process.poll() is not None:
                raise RuntimeError(f"a process of the site ended:\n{(site.folder / log).read_text()}")
        try:
            ready = httpx2.get(f"{site.url}/health/ready")
            if ready.status_code == 200 and all(one["is_ok"] for one in ready.json().get("engines", [])):
                return
        except httpx2.TransportError:
            pass
        time.sleep(0.1)
    raise RuntimeError(f"the site did not get ready:\n{site.log()}")
