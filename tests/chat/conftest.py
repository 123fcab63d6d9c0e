"""A scripted engine for the whole module, real rows, and a socket that speaks frames."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore
from django.db import connection, connections
from pytest_asyncio import is_async_test

from chatsite.accounts.models import Tenant, User
from chatsite.chat import again_asked
from chatsite.chat.ending import cancel_in_engine
from chatsite.chat.running import running
from chatsite.db import run_in_db
from chatsite.engines import close_engines
from inference.testing import EngineProcess, scripted_engine
from semcache import flights, service
from semcache.models import CacheFlight, CacheRule
from tests.chat.api_client import page, stranger  # noqa: F401 - fixtures
from tests.chat.broker import Broker
from tests.chat.socket import Socket
from tests.patience import PATIENCE_S

ORIGIN = "http://localhost:8000"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One loop for the folder: gRPC stalls where an event comes for the closed loop of an earlier test."""
    for item in items:
        if "tests/chat/" in str(item.path) and is_async_test(item):
            item.add_marker(pytest.mark.asyncio(loop_scope="package"), append=False)


@pytest_asyncio.fixture(scope="package", loop_scope="package")
async def engine_process() -> AsyncIterator[EngineProcess]:
    """One scripted engine for this folder; tests that kill it start their own."""
    async with scripted_engine() as engine:
        yield engine


@pytest.fixture
def config(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Changes fields of the process's settings for one test."""

    def change(**fields: Any) -> None:
        monkeypatch.setattr(settings, "CONFIG", dataclasses.replace(settings.CONFIG, **fields))

    return change


@pytest_asyncio.fixture(loop_scope="package")
async def clean(transactional_db: None) -> AsyncIterator[None]:
    """Nothing is left running, and the next test connects anew."""
    yield
    for generation in list(running()._answers):
        await cancel_in_engine(generation)  # else it goes on, and the next test counts its tokens
    await running().drain(0)
    await close_engines()
    # What signed a test's browser in left its connection on a thread that would outlive the test database.
    await sync_to_async(connections.close_all)()


@pytest_asyncio.fixture(loop_scope="package")
async def engine(engine_process: EngineProcess, config: Any, clean: None) -> EngineProcess:
    """The scripted engine behind `chatsite.engine`."""
    config(engine_address=engine_process.address, checkpoint_s=0.05, lease_s=0.5, cache_enabled=False)
    return engine_process


@pytest_asyncio.fixture(loop_scope="package")
async def user(transactional_db: None) -> User:
    return await run_in_db(make_user, "ada")


@pytest_asyncio.fixture(loop_scope="package")
async def other_user(transactional_db: None) -> User:
    return await run_in_db(make_user, "bob")


@pytest_asyncio.fixture(loop_scope="package")
async def socket(engine: EngineProcess, user: User) -> AsyncIterator[Socket]:
    socket = await open_socket(user)
    yield socket
    await socket.close()


@pytest_asyncio.fixture(loop_scope="package")
async def caching(
    engine: Any, user: User, config: Any, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Socket]:
    """A socket of a site with one rule: equal questions get equal answers, also on a busy machine."""
    config(cache_enabled=True)
    monkeypatch.setattr(settings, "SEMCACHE_BUDGET_MS", 5000)
    await run_in_db(make_rule)
    service.forget_rules()
    socket = await open_socket(user)
    yield socket
    await socket.close()


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    broker = Broker()
    monkeypatch.setattr(again_asked, "current_app", broker)
    return broker


@pytest_asyncio.fixture(loop_scope="package")
async def stale_site(
    engine: EngineProcess, config: Any, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[None]:
    """One rule that serves answers for an hour past their time."""

    def only_rule() -> None:
        CacheRule.objects.all().delete()
        CacheFlight.objects.all().delete()
        CacheRule.objects.create(name="everything", mode="exact", sharing="private", ttl_s=60, stale_s=3600)

    config(cache_enabled=True, max_live_per_user=1000)
    monkeypatch.setattr(settings, "SEMCACHE_BUDGET_MS", 20_000)
    monkeypatch.setattr(flights, "STEP_WITHIN_S", PATIENCE_S)
    monkeypatch.setattr(again_asked, "SENT_WITHIN_S", PATIENCE_S)
    await run_in_db(only_rule)
    service.forget_rules()
    yield
    await again_asked.all_sent()


async def open_socket(user: User) -> Socket:
    socket = Socket(await run_in_db(cookie_of, user))
    await socket.open()
    return socket


def make_rule() -> None:
    CacheRule.objects.all().delete()
    CacheRule.objects.create(name="everything", mode="exact")


def make_user(name: str) -> User:
    tenant, _ = Tenant.objects.get_or_create(is_default=True, defaults={"slug": "default", "name": "Default"})
    return User.objects.create_user(name, tenant=tenant)  # no password: hashing one takes long


def cookie_of(user: User) -> str:
    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.save()
    return f"{settings.SESSION_COOKIE_NAME}={session.session_key}"


def until_somebody_waits() -> None:
    """Until another transaction waits for a lock."""
    give_up_at = time.monotonic() + PATIENCE_S
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_locks WHERE NOT granted")
        while cursor.fetchone() is None and time.monotonic() < give_up_at:
            time.sleep(0.01)
            cursor.execute("SELECT 1 FROM pg_locks WHERE NOT granted")
