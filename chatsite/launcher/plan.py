"""Which processes one installation consists of, in the order in which they depend on each other.

The only module that knows the product's commands. A server whose address is given is not started.
"""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from chatsite.launcher.config import LauncherConfig
from chatsite.launcher.credentials import Credential, kept_credential
from chatsite.launcher.postgres import EmbeddedPostgres
from chatsite.launcher.probes import engine_answers, engine_serves, web_answers
from chatsite.launcher.process import Command, Identity
from chatsite.launcher.steps import Job, Plan, Service, Step
from chatsite.launcher.valkey import EmbeddedValkey

PROJECT = Path(__file__).resolve().parents[2]
CELERY = ("-m", "celery", "-A", "chatsite.celery")
WORKER_OPTIONS = (
    "worker",
    # Threads: one process whose end is its tasks' end, for tasks that wait for the engine or the database.
    *("--pool=threads", "--concurrency=4"),
    # One worker has nobody to mingle or gossip with.
    *("--without-mingle", "--without-gossip", "--loglevel=INFO"),
)
WORKER_READY = re.compile(r"celery@\S+ ready")
# At INFO it would log every task that it sends.
BEAT_OPTIONS = ("beat", "--loglevel=WARNING", "--pidfile=")
# In its banner, the last thing it says before its clock runs.
BEAT_READY = re.compile(r"Configuration ->")
# Celery warns its operator, who knows; whoever runs the whole site as root has decided so.
AS_ROOT_IS_MEANT = "ignore:You're running the worker with superuser privileges"


@dataclass(frozen=True, slots=True)
class Place:
    """Where one run keeps its files and its sockets, and as whom its database runs."""

    data: Path
    runtime: Path
    identity: Identity
    is_throwaway: bool = False


def service_steps(config: LauncherConfig, place: Place) -> tuple[Plan, dict[str, str]]:
    """The embedded servers that `config` needs, and the variables by which others find them."""
    steps: list[Step] = []
    environ: dict[str, str] = {}
    if not config.database_url:
        postgres = EmbeddedPostgres(
            place.data / "postgres",
            place.runtime / "postgres",
            place.identity,
            config.nice,
            place.is_throwaway,
        )
        environ["DATABASE_URL"] = postgres.url
        steps.append(
            Service(
                name="postgres",
                command=postgres.command(),
                prepare=postgres.prepare,
                probe=postgres.accepts,
                stop_signal=signal.SIGINT,
            )
        )
    if not config.redis_url:
        valkey = EmbeddedValkey(place.data / "valkey", place.runtime, config.nice, place.is_throwaway)
        environ["REDIS_URL"] = valkey.url
        steps.append(
            Service(name="valkey", command=valkey.command(), prepare=valkey.prepare, probe=valkey.answers)
        )
    return tuple(steps), environ


def site_plan(config: LauncherConfig, place: Place) -> tuple[Plan, Credential]:
    """Everything that `make run` runs, and the first administrator's password."""
    servers, addresses = service_steps(config, place)
    password = kept_credential(place.data / "admin-password", num_bytes=12)
    environ = child_environment(config, place, addresses, os.environ)
    engine = () if config.engine_address else engine_steps(config, environ)
    command = partial(_python, environ, config.nice)
    making_admin = _python(
        environ | {"ADMIN_PASSWORD": config.admin_password or password.value},
        config.nice,
        *("manage.py", "ensure_admin"),
    )
    site: Plan = (
        Job("migrate", command("manage.py", "migrate"), after=tuple(step.name for step in servers)),
        Job("admin", making_admin, after=("migrate",)),
        Service("worker", command(*CELERY, *WORKER_OPTIONS), ("migrate",), ready_line=WORKER_READY),
        Service("beat", command(*CELERY, *BEAT_OPTIONS), ("migrate",), ready_line=BEAT_READY),
        Service(
            "web",
            command("manage.py", "serve", "--port", str(config.port)),
            after=("migrate",),
            # Not /health/ready: it needs the engine, which starts at the same time.
            probe=partial(web_answers, config.port, "/health/live"),
            alive=partial(web_answers, config.port, "/health/live"),
            grace_s=15.0,
        ),
    )
    return (*servers, *engine, *site), password


def engine_steps(config: LauncherConfig, environ: Mapping[str, str]) -> Plan:
    """The models' preparation and the engine, which need none of the site's servers."""
    address = environ["ENGINE_ADDRESS"]
    # At nice 0: the front lowers itself once its core, which inherits the priority, is started.
    engine = _python({**environ, "ENGINE_FRONT_NICE": str(config.nice)}, 0, "-m", "inference")
    return (
        Job("models", _python(environ, config.nice, "-m", "inference.models.prepare")),
        Service(
            "engine",
            engine,
            after=("models",),
            probe=partial(engine_serves, address),
            alive=partial(engine_answers, address),
            start_timeout_s=900.0,
        ),
    )


def child_environment(
    config: LauncherConfig, place: Place, addresses: Mapping[str, str], given: Mapping[str, str]
) -> dict[str, str]:
    """The environment of the product's own processes: `given`, completed by what this launcher made."""
    secret_key = config.secret_key or kept_credential(place.data / "secret-key").value
    salt_key = config.engine_salt_key or kept_credential(place.data / "engine-salt-key").value
    return {
        "CHAT_GUESTS": "on",
        **given,
        # Empty means off: without kept bytecode every start compiles all modules again, which costs a third of it.
        "PYTHONDONTWRITEBYTECODE": "",
        **addresses,
        "DATA_DIR": str(place.data),
        "PORT": str(config.port),
        "ENGINE_ADDRESS": config.engine_address or f"unix:{place.runtime}/engine.sock",
        "SECRET_KEY": secret_key,
        "ENGINE_SALT_KEY": salt_key,
        "PYTHONUNBUFFERED": "1",
        "PYTHONWARNINGS": AS_ROOT_IS_MEANT,
    }


def _python(environ: Mapping[str, str], nice: int, *arguments: str) -> Command:
    return Command(argv=(sys.executable, *arguments), environ=environ, cwd=PROJECT, nice=nice)
