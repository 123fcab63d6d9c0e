"""How the web and worker processes are put together."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.conf import settings

from chatsite import checks
from chatsite.celery import app
from chatsite.loop import run

HEAVY = ("torch", "transformers", "tokenizers")


def test_missing_settings_are_named_one_by_one(config: Any) -> None:
    assert checks.needed_settings() == []
    config(secret_key="", database_url="", redis_url="")
    messages = [str(error.msg) for error in checks.needed_settings()]
    assert [message.split()[0] for message in messages] == ["SECRET_KEY", "DATABASE_URL", "REDIS_URL"]


@pytest.mark.parametrize(
    ("given", "is_right"),
    [("unix:/a", True), ("unix:/a, host:1 ,", True), (" , ", False), ("unix:/a,host:1,unix:/a", False)],
)
def test_each_engine_is_named_once(config: Any, given: str, is_right: bool) -> None:
    config(engine_address=given)
    assert [error.id for error in checks.engines()] == ([] if is_right else ["chatsite.E031"])


def test_every_periodic_task_exists_in_the_worker() -> None:
    app.finalize()
    app.loader.import_default_modules()
    scheduled = {entry["task"] for entry in app.conf.beat_schedule.values()}
    assert {"chat.adopt_orphans", "chat.erase_temporary", "chat.erase_guests"} <= scheduled
    assert scheduled <= set(app.tasks)


def test_the_web_process_never_loads_a_model_library() -> None:
    code = f"import sys, chatsite.asgi, chatsite.serving; sys.exit(any(name in sys.modules for name in {HEAVY!r}))"
    assert subprocess.run([sys.executable, "-c", code], cwd=settings.BASE_DIR, check=False).returncode == 0


def test_the_web_process_sends_tasks_to_the_sites_broker_from_every_thread() -> None:
    code = """
import sys, threading, chatsite.asgi
from chatsite.chat.tasks import settle_erasures
found = []
thread = threading.Thread(target=lambda: found.append(settle_erasures.app.main))
thread.start()
thread.join()
sys.exit(found != ["chatsite"])
"""
    assert subprocess.run([sys.executable, "-c", code], cwd=settings.BASE_DIR, check=False).returncode == 0


def test_a_worker_runs_all_its_coroutines_on_one_loop() -> None:
    async def loop() -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    with ThreadPoolExecutor(4) as threads:
        assert len({threads.submit(lambda: run(loop())).result() for _ in range(8)}) == 1
