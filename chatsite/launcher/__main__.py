"""`python -m chatsite.launcher run`: the whole site; `... services`: only its embedded servers.

The door: reads the command line, holds the data folder, and turns signals and errors into an orderly end.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import Coroutine
from pathlib import Path

from chatsite.launcher.config import LauncherConfig, read_config
from chatsite.launcher.console import Console
from chatsite.launcher.credentials import Credential
from chatsite.launcher.errors import EX_CONFIG, LauncherError, PortTaken
from chatsite.launcher.identity import unprivileged_identity
from chatsite.launcher.lock import DataLock, Holder, hold_data_dir
from chatsite.launcher.plan import Place, service_steps, site_plan
from chatsite.launcher.probes import web_answers
from chatsite.launcher.process import Identity
from chatsite.launcher.runtime import remove_leftover, runtime_folder
from chatsite.launcher.supervisor import Supervisor
from inference.settings import SettingError

READY_EVERY_S = 0.3
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m chatsite.launcher", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("run", help="start the whole site and keep it running")
    services = commands.add_parser("services", help="start the embedded servers; ends when its input closes")
    services.add_argument(
        "--throwaway", action="store_true", help="trade crash safety for speed (tests only)"
    )
    options = parser.parse_args(arguments)
    console = Console(sys.stderr if options.command == "services" else sys.stdout)
    try:
        config = read_config()
        if options.command == "services":
            asyncio.run(serve_services(config, console, is_throwaway=options.throwaway))
        else:
            asyncio.run(serve_site(config, console))
    except SettingError as error:
        console.error(str(error))
        return EX_CONFIG
    except LauncherError as error:
        console.error(str(error))
        return error.exit_status
    return 0


async def serve_site(config: LauncherConfig, console: Console) -> None:
    """The whole site until a signal ends it."""
    with hold_data_dir(config.data_path) as lock:
        check_port_is_free(config.port)
        with runtime_folder() as runtime:
            place = await take_place(config, lock, runtime)
            plan, password = site_plan(config, place)
            supervisor = Supervisor(plan, console)
            console.step("starting: " + ", ".join(step.name for step in plan))

            async def work() -> None:
                await supervisor.start()
                await site_is_whole(config)
                welcome(config, password, console)
                await supervisor.watch()

            await run_until_stopped(supervisor, console, work(), asyncio.Event())


async def site_is_whole(config: LauncherConfig) -> None:
    """Return when the site itself says that its database answers and its engine makes tokens."""
    while True:
        if await web_answers(config.port, "/health/ready"):
            return
        await asyncio.sleep(READY_EVERY_S)


async def serve_services(config: LauncherConfig, console: Console, *, is_throwaway: bool) -> None:
    """Only the embedded servers: one line of JSON with their addresses, then wait for a signal or the end of input."""
    with hold_data_dir(config.data_path) as lock, runtime_folder() as runtime:
        place = await take_place(config, lock, runtime, is_throwaway=is_throwaway)
        plan, addresses = service_steps(config, place)
        supervisor = Supervisor(plan, console)
        stop = asyncio.Event()
        stop_at_end_of_input(stop)

        async def work() -> None:
            await supervisor.start()
            print(json.dumps(addresses), flush=True)
            await supervisor.watch()

        await run_until_stopped(supervisor, console, work(), stop)


def stop_at_end_of_input(stop: asyncio.Event) -> None:
    """A parent that dies closes our input: this is how a test run that was killed leaves no server behind."""
    loop, descriptor = asyncio.get_running_loop(), sys.stdin.fileno()

    def on_input() -> None:
        if not os.read(descriptor, 4096):
            loop.remove_reader(descriptor)
            stop.set()

    loop.add_reader(descriptor, on_input)


async def take_place(
    config: LauncherConfig, lock: DataLock, runtime: Path, *, is_throwaway: bool = False
) -> Place:
    """Sign the lock, clear up after a killed predecessor and settle as whom the database runs."""
    if lock.previous is not None:
        remove_leftover(lock.previous.runtime_dir)
    lock.record(Holder(os.getpid(), config.url, str(runtime)))
    identity = await unprivileged_identity()
    if identity is Identity.NOBODY:
        for folder in (runtime, config.data_path):
            folder.chmod(0o711)
    return Place(config.data_path, runtime, identity, is_throwaway)


def check_port_is_free(port: int) -> None:
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind(("", port))
        except OSError as error:
            raise PortTaken(
                f"port {port} cannot be used ({error.strerror}); choose another: make run PORT=8001"
            ) from None


async def run_until_stopped(
    supervisor: Supervisor, console: Console, work: Coroutine[None, None, None], stop: asyncio.Event
) -> None:
    """Do `work` until `stop` is set (signals set it), then stop. A second signal ends without any grace."""

    def on_signal() -> None:
        if stop.is_set():
            supervisor.hurry.set()
        stop.set()

    loop = asyncio.get_running_loop()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, on_signal)
    try:
        await finish_or_cancel(work, stop)
    finally:
        await supervisor.stop()
        console.step("stopped")


async def finish_or_cancel(work: Coroutine[None, None, None], stop: asyncio.Event) -> None:
    """Run `work` to its end, or cancel it when `stop` is set first. Raises what `work` raises."""
    working = asyncio.ensure_future(work)
    stopping = asyncio.ensure_future(stop.wait())
    await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not working.done():
        working.cancel()
        await asyncio.wait({working})
    if not working.cancelled():
        working.result()


def welcome(config: LauncherConfig, password: Credential, console: Console) -> None:
    """Where to go now, and how to sign in to the admin."""
    console.ready(f"ready: {config.url}")
    if config.admin_password:
        console.step(f"admin: {config.url}admin/ user admin, password from ADMIN_PASSWORD")
    elif password.is_new:
        console.step(
            f"admin: {config.url}admin/ user admin, password {password.value} (kept in {password.path})"
        )
    else:
        console.step(f"admin: {config.url}admin/ user admin, password in {password.path}")
    console.step("Ctrl-C stops everything")


if __name__ == "__main__":
    sys.exit(main())
