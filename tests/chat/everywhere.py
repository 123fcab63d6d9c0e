"""Where a text stands: in any column of any table, in any key of the broker.

The tables come from the database itself, so that a new one is looked into without a word here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import redis
from django.conf import settings
from django.db import connection

TABLES = """
SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' AND table_type = 'BASE TABLE'"""


def tables_with(needles: Iterable[str]) -> set[str]:
    """The tables in which any of these stands, as text or as bytes."""
    wanted = [form for needle in needles for form in (needle, needle.encode().hex())]
    with connection.cursor() as cursor:
        cursor.execute(TABLES)
        return {table for (table,) in cursor.fetchall() if _holds(cursor, table, wanted)}


def keys_with(needle: str) -> set[bytes]:
    """The broker's keys whose name or value holds it."""
    with redis.Redis.from_url(settings.CONFIG.redis_url) as broker:
        return {
            key for key in broker.scan_iter() if needle.encode() in key + repr(_value(broker, key)).encode()
        }


def _holds(cursor: Any, table: str, wanted: list[str]) -> bool:
    cursor.execute(
        f'SELECT EXISTS (SELECT FROM "{table}" AS row, unnest(%s::text[]) AS needle '
        "WHERE position(needle IN lower(row::text)) > 0)",
        [wanted],
    )
    return bool(cursor.fetchone()[0])


def _value(broker: Any, key: bytes) -> Any:
    match broker.type(key):
        case b"string":
            return broker.get(key)
        case b"list":
            return broker.lrange(key, 0, -1)
        case b"hash":
            return broker.hgetall(key)
        case b"set":
            return broker.smembers(key)
        case b"zset":
            return broker.zrange(key, 0, -1)
        case _:
            return broker.dump(key)
