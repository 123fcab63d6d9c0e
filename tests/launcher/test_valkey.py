"""The embedded Redis-protocol server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import redis

from chatsite.launcher.steps import Service
from chatsite.launcher.supervisor import Supervisor
from chatsite.launcher.valkey import EmbeddedValkey

Supervise = Callable[..., Supervisor]


def _service(server: EmbeddedValkey) -> Service:
    return Service("valkey", server.command(), prepare=server.prepare, probe=server.answers)


async def test_it_answers_by_its_url_on_a_private_socket_only(
    supervise: Supervise, tmp_path: Path, socket_dir: Path
) -> None:
    server = EmbeddedValkey(tmp_path / "valkey", socket_dir)
    await supervise((_service(server),)).start()
    with redis.Redis.from_url(server.url) as client:
        assert client.ping()
        assert client.config_get("port") == {"port": "0"}
    assert server.socket.stat().st_mode & 0o777 == 0o700
    assert socket_dir.stat().st_mode & 0o777 == 0o700


async def test_tasks_in_the_queue_survive_a_restart(
    supervise: Supervise, tmp_path: Path, socket_dir: Path
) -> None:
    server = EmbeddedValkey(tmp_path / "valkey", socket_dir)
    first = supervise((_service(server),))
    await first.start()
    with redis.Redis.from_url(server.url) as client:
        client.rpush("queue", "task")
    await first.stop()
    await supervise((_service(server),)).start()
    with redis.Redis.from_url(server.url) as client:
        assert client.lrange("queue", 0, -1) == [b"task"]


async def test_a_throwaway_server_writes_nothing(
    supervise: Supervise, tmp_path: Path, socket_dir: Path
) -> None:
    server = EmbeddedValkey(tmp_path / "valkey", socket_dir, is_throwaway=True)
    supervisor = supervise((_service(server),))
    await supervisor.start()
    with redis.Redis.from_url(server.url) as client:
        client.set("a", "b")
    await supervisor.stop()
    assert list((tmp_path / "valkey").iterdir()) == []
