"""The embedded PostgreSQL: private, durable, and patient with what a crash left behind."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from chatsite.launcher.identity import unprivileged_identity
from chatsite.launcher.postgres import EmbeddedPostgres
from chatsite.launcher.steps import Service
from chatsite.launcher.supervisor import Supervisor

from .processes import wait_for_end

Supervise = Callable[..., Supervisor]


async def _server(folder: Path, socket_dir: Path) -> EmbeddedPostgres:
    return EmbeddedPostgres(folder, socket_dir, await unprivileged_identity())


def _service(server: EmbeddedPostgres) -> Service:
    return Service(
        "postgres", server.command(), prepare=server.prepare, probe=server.accepts, stop_signal=signal.SIGINT
    )


def _postmaster(folder: Path) -> int:
    return int((folder / "postmaster.pid").read_text().split()[0])


async def _no_restart(delay_s: float) -> None:
    """The wait before a restart never ends: what dies stays dead."""
    await asyncio.Event().wait()


async def test_it_serves_vectors_by_its_url(
    supervise: Supervise, database_folder: Path, socket_dir: Path
) -> None:
    server = await _server(database_folder, socket_dir)
    await supervise((_service(server),)).start()
    with psycopg.connect(server.url) as connection:
        connection.execute("CREATE EXTENSION vector")
        row = connection.execute("SELECT '[1,2]'::vector <=> '[1,2]'::vector, lower('ÄÖ')").fetchone()
        connection.rollback()
    assert row == (0.0, "äö")


async def test_its_folders_are_private_and_it_has_no_port(
    supervise: Supervise, database_folder: Path, socket_dir: Path
) -> None:
    server = await _server(database_folder, socket_dir)
    await supervise((_service(server),)).start()
    assert database_folder.stat().st_mode & 0o777 == 0o700
    assert socket_dir.stat().st_mode & 0o777 == 0o700
    with psycopg.connect(server.url) as connection:
        shown = connection.execute("SHOW listen_addresses").fetchone()
        commit = connection.execute("SHOW synchronous_commit").fetchone()
        checksums = connection.execute("SHOW data_checksums").fetchone()
    assert (shown, commit, checksums) == (("",), ("on",), ("on",))


async def test_a_committed_row_survives_kill_9(
    supervise: Supervise, database_folder: Path, socket_dir: Path, console: object
) -> None:
    server = await _server(database_folder, socket_dir)
    first = supervise((_service(server),), sleep=_no_restart)
    await first.start()
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE kept (word text)")
        connection.execute("INSERT INTO kept VALUES ('here')")
        killed = _postmaster(database_folder)
        os.kill(killed, signal.SIGKILL)
    assert wait_for_end(killed)
    await first.stop()
    await supervise((_service(server),)).start()
    with psycopg.connect(server.url) as connection:
        assert connection.execute("SELECT word FROM kept").fetchall() == [("here",)]


async def test_it_waits_for_the_end_of_a_leftover_server(
    supervise: Supervise, database_folder: Path, socket_dir: Path
) -> None:
    await supervise(
        (_service(await _server(database_folder, socket_dir / "old")),), sleep=_no_restart
    ).start()
    leftover = _postmaster(database_folder)
    server = await _server(database_folder, socket_dir / "new")
    lines: list[str] = []
    await server.prepare(lines.append)
    assert wait_for_end(leftover)
    assert f"process {leftover}" in lines[0]


async def test_a_recorded_id_that_now_is_another_program_is_forgotten(
    supervise: Supervise, database_folder: Path, socket_dir: Path
) -> None:
    server = await _server(database_folder, socket_dir)
    await supervise((_service(server),)).stop()
    (database_folder / "postmaster.pid").write_text(f"{os.getppid()}\n{database_folder}\n")
    await supervise((_service(server),)).start()
    assert _postmaster(database_folder) != os.getppid()


async def test_half_an_initialisation_is_done_again(tmp_path: Path, socket_dir: Path) -> None:
    server = await _server(tmp_path / "postgres", socket_dir)
    (tmp_path / "postgres.partial").mkdir()
    (tmp_path / "postgres.partial" / "half").write_text("of a database")
    await server.prepare(lambda line: None)
    assert (tmp_path / "postgres" / "PG_VERSION").exists()
    assert not (tmp_path / "postgres.partial").exists()


@pytest.mark.parametrize("folder", ["run", "with space", "per%cent"])
def test_the_url_carries_any_folder(folder: str, tmp_path: Path) -> None:
    from psycopg.conninfo import conninfo_to_dict

    from chatsite.launcher.process import Identity

    server = EmbeddedPostgres(tmp_path, tmp_path / folder, Identity.KEEP)
    assert conninfo_to_dict(server.url)["host"] == str(tmp_path / folder)
