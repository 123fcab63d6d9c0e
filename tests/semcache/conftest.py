"""Every test of the cache starts with a process that has seen nothing, and leaves the tables as it found them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth import get_user_model
from django.db import connection, connections, transaction

from chatsite.accounts.models import Tenant
from semcache import process
from semcache.breaker import Breaker
from semcache.models import CacheRule
from semcache.quality.hours import HourCounter
from semcache.quality.question_log import QuestionLog
from semcache.rules.presets import add_missing
from semcache.rules.rulebook import RuleBook
from semcache.storage.usage import HitCounter


@pytest.fixture(autouse=True)
def fresh_process(monkeypatch: pytest.MonkeyPatch, settings) -> None:
    settings.SEMCACHE_BUDGET_MS = 30_000  # a busy test machine must not turn hits into timeouts
    settings.SEMCACHE_ASKED_BY = ""  # no engine runs beside these tests
    monkeypatch.setattr(process, "rules", RuleBook())
    monkeypatch.setattr(process, "hits", HitCounter())
    monkeypatch.setattr(process, "hours", HourCounter())
    monkeypatch.setattr(process, "looks", QuestionLog())
    monkeypatch.setattr(process, "store_breaker", Breaker())
    monkeypatch.setattr(process, "embedder_breaker", Breaker())
    monkeypatch.setattr(process, "verifier_breaker", Breaker())


@pytest.fixture(autouse=True)
async def connections_given_back() -> AsyncIterator[None]:
    """Asynchronous ORM calls of a test leave their connection on a thread that would outlive the test database."""
    yield
    await sync_to_async(connections.close_all)()


@pytest.fixture
def staff(client, db):
    """A superuser's browser over a cache without rules. No password: hashing one takes half a second."""
    CacheRule.objects.all().delete()
    client.force_login(get_user_model().objects.create_superuser("root"))
    return client


@pytest.fixture
def committed(transactional_db) -> None:
    """The cache's tables, empty, for tests whose work commits on other threads."""


@pytest.fixture
def transactional_db(django_db_setup, django_db_blocker) -> Iterator[None]:
    """In place of pytest-django's, by whose name the test database is made: emptying every table takes much longer."""
    with django_db_blocker.unblock():
        _empty_tables()
        # A test that empties every table may have run before: whoever is made an account needs this one.
        Tenant.objects.get_or_create(is_default=True, defaults={"slug": "default", "name": "Default"})
        yield
        _empty_tables()
        add_missing(CacheRule)
        connection.close()


# Whatever points at another one comes before it; a command's lines in the admin's log are committed, too.
EMPTIED = (
    "cachelook",
    "cachecomplaint",
    "cacheentry",
    "cachecheck",
    "cacherulehour",
    "cachepromotion",
    "cacheimport",
)
EMPTIED_IN_ORDER = (*(f"semcache_{table}" for table in EMPTIED), "semcache_cacherule", "django_admin_log")


def _empty_tables() -> None:
    """Waits for who still writes: what a test set going may count a look-up after its end."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"LOCK TABLE {', '.join(EMPTIED_IN_ORDER)} IN ACCESS EXCLUSIVE MODE")
        for table in EMPTIED_IN_ORDER:
            cursor.execute(f"DELETE FROM {table}")
