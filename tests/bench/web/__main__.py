"""`python -m tests.bench.web [--quick]`: what one web process adds to the engine's events under many streams, and
what open sockets cost. Measured beside a scripted engine; writes the table of docs/web-benchmarks.md.

Knows the order of things and the site that is measured.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import secrets
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from chatsite.chat.pace import Pace
from inference.testing.script import script_text
from tests.bench import host
from tests.bench.web import report
from tests.bench.web.clients import AnswerBroken, Api, Door, Socket
from tests.bench.web.lags import lags_s
from tests.bench.web.report import Figure
from tests.livesite import LiveSite, live_site
from tests.plugins.servers import Servers

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = Path(__file__).resolve().parents[3] / "docs" / "web-benchmarks.md"
# The site's own defaults, written down so that the lags are taken by the same rule.
PACE = Pace(max_tokens=4, max_wait_s=0.05)
SOCKETS_PER_USER = 10
Client = type[Api] | type[Socket]
# With the share of the rate at which their tokens come.
KINDS: dict[str, tuple[Sequence[Client], float]] = {
    "SSE": ([Api], 1.0),
    "WebSocket": ([Socket], 1.0),
    "both at half the rate": ([Api, Socket], 0.5),
    "both": ([Api, Socket], 1.0),
}


@dataclass(frozen=True, slots=True)
class Load:
    """So many streams of each kind at a time, whose answers take so long, with so many tokens a second."""

    num_streams: int
    tokens_per_s: float
    lasts_s: float

    @property
    def question(self) -> str:
        return script_text(
            stamps=int(self.lasts_s * self.tokens_per_s), delay_ms=1000 / self.tokens_per_s, first_delay_ms=10
        )


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    gc.disable()  # a pause of the client would look like one of the server
    machine = f"{host.processor()}, commit {host.commit()}, load before {os.getloadavg()[0]:.1f}"
    print(machine + ("\n" if host.is_quiet() else "\nWARNING: this machine is not quiet\n"), flush=True)
    load = Load(options.streams, options.tokens_per_s, options.seconds)
    with _site(2 * options.streams) as site:
        doors = _doors(site, max(options.streams, options.sockets))
        figures = asyncio.run(_measure(site, doors, load, options.sockets))
    for figure in figures:
        print(report.line(figure), flush=True)
    if not options.quick:
        report.write(figures, machine, options.page)
    return 0


async def _measure(site: LiveSite, doors: Sequence[Door], load: Load, num_sockets: int) -> list[Figure]:
    some = doors[: load.num_streams]
    await _streams(
        some[:4], [Api, Socket], Load(4, load.tokens_per_s, 1.0)
    )  # what is done the first time only
    figures = [await _growth(site, doors[:num_sockets], load)]
    for name, (clients, share_of_rate) in KINDS.items():
        busy = _cpu_s(site.web.pid), time.monotonic()
        lags = await _streams(some, clients, replace(load, tokens_per_s=share_of_rate * load.tokens_per_s))
        share = (_cpu_s(site.web.pid) - busy[0]) / (time.monotonic() - busy[1])
        figures.append(
            Figure(f"{name}: {len(some) * len(clients)} streams", lags, {"web process CPU %": 100 * share})
        )
    return figures


async def _streams(doors: Sequence[Door], clients: Sequence[Client], load: Load) -> list[float]:
    """Lags while every client of each kind has a stream: between the last one's beginning and the first one's end.

    Each asks a second question when it has the first answer, and they begin evenly spread over the time that an answer
    takes: as many answers end and begin at any moment as at any other.
    """
    opened = [await client.opened(door) for door in doors for client in clients]
    began_s = time.monotonic()

    async def one(number: int, client: Api | Socket) -> list[float]:
        await asyncio.sleep(load.lasts_s * number / len(opened))
        answers = [await client.answer(load.question) for _ in range(2)]
        client.close()
        between_s = (began_s + load.lasts_s, began_s + 2 * load.lasts_s)
        return [lag for answer in answers for lag in lags_s(answer, PACE, between_s)]

    found = await asyncio.gather(*(one(number, client) for number, client in enumerate(opened)))
    return [lag for lags in found for lag in lags]


async def _growth(site: LiveSite, doors: Sequence[Door], load: Load) -> Figure:
    """Memory of the web process with open sockets and twenty streams over what it had before."""
    before = _resident_mib(site.web.pid)
    sockets = [await Socket.opened(door) for door in doors]
    staying = [asyncio.create_task(socket.stay()) for socket in sockets]
    lags = await _streams(doors[:20], [Socket], load)
    grown = _resident_mib(site.web.pid) - before
    num_gone = sum(task.done() for task in staying)
    for task in staying:
        task.cancel()
    await asyncio.gather(*staying, return_exceptions=True)
    for socket in sockets:
        socket.close()
    if num_gone:
        raise AnswerBroken(f"{num_gone} sockets were closed by the server")
    return Figure(f"{len(doors)} sockets and {len(doors[:20])} streams", lags, {"growth MiB": grown})


@contextmanager
def _site(num_live: int) -> Iterator[LiveSite]:
    with tempfile.TemporaryDirectory(prefix="rill-bench-") as folder:
        servers = Servers(Path(folder))
        try:
            os.environ.update(servers.addresses())
            yield from _live(num_live)
        finally:
            servers.stop()


def _live(num_live: int) -> Iterator[LiveSite]:
    with live_site(
        "web_bench",
        SECRET_KEY=secrets.token_urlsafe(48),
        ENGINE_MAX_BATCH=str(min(1024, num_live + 32)),
        ENGINE_MAX_QUEUE=str(num_live + 64),
        CHAT_MAX_LIVE_PER_USER=str(2 * SOCKETS_PER_USER + num_live),
        CHAT_COALESCE_TOKENS=str(PACE.max_tokens),
        CHAT_COALESCE_MS=str(int(1000 * (PACE.max_wait_s or 0))),
        CHAT_LOG_LEVEL="WARNING",
    ) as site:
        yield site


def _doors(site: LiveSite, num: int) -> list[Door]:
    """As many doors, ten for each user."""
    num_users = -(-num // SOCKETS_PER_USER)
    names = [f"bench{number}" for number in range(num_users)]
    keys = {name: site.key(name, "chat") for name in names}
    made = site.manage("shell", "--verbosity", "0", "-c", SESSIONS)
    cookies = json.loads(made.strip().splitlines()[-1])
    return [
        Door(site.url, keys[name], f"{cookies['name']}={cookies[name]}")
        for name in names
        for _ in range(SOCKETS_PER_USER)
    ][:num]


# Run inside of the site, where sessions are signed.
SESSIONS = """
import json
from importlib import import_module
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from chatsite.accounts.models import User

made = {"name": settings.SESSION_COOKIE_NAME}
for user in User.objects.filter(username__startswith="bench"):
    session = import_module(settings.SESSION_ENGINE).SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.save()
    made[user.username] = session.session_key
print(json.dumps(made))
"""


def _resident_mib(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    (resident,) = [line for line in lines if line.startswith("VmRSS:")]
    return int(resident.split()[1]) / 1024


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.web", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small numbers, and nothing is written")
    parser.add_argument("--streams", type=int, default=None, help="of each kind at a time (200)")
    parser.add_argument("--sockets", type=int, default=None, help="open at a time (1000)")
    parser.add_argument("--tokens-per-s", type=float, default=10.0, help="of each stream (10)")
    parser.add_argument("--seconds", type=float, default=None, help="that an answer takes (30)")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page that gets the table")
    options = parser.parse_args(arguments)
    small = options.quick
    options.streams = options.streams or (10 if small else 200)
    options.sockets = options.sockets or (30 if small else 1000)
    options.seconds = options.seconds or (2.0 if small else 30.0)
    return options


if __name__ == "__main__":
    sys.exit(main())
