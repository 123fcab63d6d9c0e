"""One live site for the tests of what holds for every route, with the people of the access matrix."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from uuid import uuid4

import httpx2
import psycopg
import pytest
from django.contrib.auth.hashers import PBKDF2PasswordHasher

from tests.livesite import LiveSite, live_site
from tests.patience import PATIENCE_S

PASSWORD = "correct horse battery"


@pytest.fixture(scope="package")
def site() -> Iterator[LiveSite]:
    # DEBUG: test_secrets.py looks for secrets in the log, and there is no more to be had.
    with live_site("site", CHAT_METRICS_TOKEN="only-for-tests", CHAT_LOG_LEVEL="DEBUG") as running:
        yield running


@dataclass(frozen=True, slots=True)
class Property:
    """Rows of one person: a conversation whose answer is complete and which is shared, a key, and a template.

    The id of the shared snapshot is its secret, too.
    """

    conversation: str = field(default_factory=lambda: str(uuid4()))
    message: str = field(default_factory=lambda: str(uuid4()))
    generation: str = field(default_factory=lambda: str(uuid4()))
    key: str = field(default_factory=lambda: str(uuid4()))
    share: str = field(default_factory=lambda: str(uuid4()))
    template: int = field(default_factory=lambda: uuid4().int % 2**53)


def make_person(site: LiveSite, name: str, **columns: object) -> None:
    """A person who can sign in; the cheap hash is replaced by a real one at the first sign-in."""
    password = PBKDF2PasswordHasher().encode(PASSWORD, "salt", iterations=1)
    site.user(name, password=password, **columns)


def sign_in(site: LiveSite, name: str) -> httpx2.Client:
    """A browser in which `name` is signed in, and which sends the CSRF token as the page does."""
    browser = httpx2.Client(base_url=site.url, timeout=PATIENCE_S)
    browser.get("/signin")
    form = {"username": name, "password": PASSWORD, "csrfmiddlewaretoken": browser.cookies["csrftoken"]}
    assert browser.post("/signin", data=form).status_code == 302
    browser.headers["X-CSRFToken"] = browser.cookies["csrftoken"]
    return browser


def give(site: LiveSite, name: str, rows: Property) -> None:
    """Writes `rows` for `name`; rows that are there are left alone."""
    owner = site.user(name)
    with psycopg.connect(site.environ["DATABASE_URL"], autocommit=True) as connection:
        _write(connection, owner, rows)


def _write(connection: psycopg.Connection, owner: int, rows: Property) -> None:
    """Through one connection: the matrix gives some hundred times, and each connection is a process of the server."""
    connection.execute(
        """INSERT INTO chat_conversation (id, owner_id, title, system_prompt, parameters, is_pinned, is_archived,
           is_temporary, created_at, updated_at) VALUES (%s, %s, 'private', '', '{}', false, false, false, now(), now())
           ON CONFLICT DO NOTHING""",
        (rows.conversation, owner),
    )  # fmt: skip
    connection.execute(
        """INSERT INTO chat_message (id, conversation_id, role, text, token_ids, tokenizer, state, created_at)
           VALUES (%s, %s, 'assistant', 'private', '{}', '', 'complete', now()) ON CONFLICT DO NOTHING""",
        (rows.message, rows.conversation),
    )  # fmt: skip
    connection.execute(
        """INSERT INTO chat_generation (id, message_id, user_id, engine, model, origin, state, finish_reason,
           error_code, lease_owner, stored_seq, prompt_tokens, reused_head_tokens, reused_prefix_tokens,
           reused_shared_tokens, reused_disk_tokens, trimmed_messages, prefilled_tokens, generated_tokens,
           queue_ms, prefill_ms, decode_ms, ttft_ms, created_at, deadline_at, finished_at)
           VALUES (%s, %s, %s, '', '', 'model', 'complete', 'stop', '', '', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
           now(), now(), now()) ON CONFLICT DO NOTHING""",
        (rows.generation, rows.message, owner),
    )  # fmt: skip
    connection.execute(
        """INSERT INTO chat_sharelink (id, sha256, owner_id, conversation_id, title, messages, num_messages, created_at)
           VALUES (%s, encode(sha256(%s), 'hex'), %s, %s, '', '[{"role": "user", "text": "shared"}]', 1, now())
           ON CONFLICT DO NOTHING""",
        (rows.share, rows.share.encode(), owner, rows.conversation),
    )  # fmt: skip
    # A person may have so many templates and keys, and no more; those of earlier tests are done with.
    connection.execute(
        "DELETE FROM chat_prompttemplate WHERE owner_id = %s AND id <> %s", (owner, rows.template)
    )
    connection.execute(
        """INSERT INTO chat_prompttemplate (id, owner_id, title, body, language, is_starter, use_count)
           VALUES (%s, %s, 'private', 'private', 'en', false, 0) ON CONFLICT DO NOTHING""",
        (rows.template, owner),
    )  # fmt: skip
    connection.execute(
        "DELETE FROM accounts_apikey WHERE user_id = %s AND name = 'private' AND id <> %s", (owner, rows.key)
    )
    connection.execute(
        """INSERT INTO accounts_apikey (id, user_id, tenant_id, name, prefix, sha256, scopes, created_at)
           SELECT %s, id, tenant_id, 'private', 'rill_', encode(sha256(%s), 'hex'), '{chat}', now()
           FROM accounts_user WHERE id = %s ON CONFLICT DO NOTHING""",
        (rows.key, rows.key.encode(), owner),
    )  # fmt: skip
