"""Consoles that can be read, supervisors that are always stopped, one initialised database."""

from __future__ import annotations

import asyncio
import io
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from chatsite.launcher.console import Console
from chatsite.launcher.identity import unprivileged_identity
from chatsite.launcher.postgres import EmbeddedPostgres
from chatsite.launcher.steps import Plan
from chatsite.launcher.supervisor import Supervisor


@pytest.fixture
def output() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def console(output: io.StringIO) -> Console:
    return Console(output, is_coloured=False)


@pytest.fixture
async def supervise(console: Console) -> AsyncIterator[Callable[..., Supervisor]]:
    """Makes supervisors of a plan; stops them when the test is over."""
    made: list[Supervisor] = []

    def make(plan: Plan, **options: object) -> Supervisor:
        made.append(Supervisor(plan, console, **options))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for supervisor in made:
        await supervisor.stop()


@pytest.fixture
def socket_dir() -> Iterator[Path]:
    """A folder with a path short enough for sockets, which tmp_path does not promise."""
    with tempfile.TemporaryDirectory(prefix="rill-test-") as folder:
        yield Path(folder) / "run"


@pytest.fixture(scope="module")
def database_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An initialised database that no server uses yet."""
    folder = tmp_path_factory.mktemp("database")

    async def initialise() -> None:
        identity = await unprivileged_identity()
        server = EmbeddedPostgres(folder / "postgres", folder / "run", identity, is_throwaway=True)
        await server.prepare(lambda line: None)

    asyncio.run(initialise())
    return folder / "postgres"
