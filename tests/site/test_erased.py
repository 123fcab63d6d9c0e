"""On the running site: who erases themselves leaves no word in the database, in the logs and in the data folder."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from uuid import uuid4

import httpx2

from tests.livesite import LiveSite
from tests.site.conftest import PASSWORD, make_person, sign_in

WORD = "zqlivecanary"
TABLES = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' AND table_type = 'BASE TABLE'"


def files_with(folder: Path, word: str) -> set[str]:
    """Every readable file of the folder that holds the word."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path.name for path in files if word.encode() in path.read_bytes()}


def tables_with(site: LiveSite, word: str) -> set[str]:
    return {
        str(table)
        for (table,) in site.sql(TABLES)
        if site.sql(
            f'SELECT 1 FROM "{table}" AS row WHERE position(%s IN lower(row::text)) > 0 LIMIT 1', word
        )
    }


def test_who_erases_themselves_leaves_no_word_behind(site: LiveSite) -> None:
    make_person(site, "leaver", last_name=WORD)
    with closing(sign_in(site, "leaver")) as page, closing(sign_in(site, "leaver")) as elsewhere:
        talk = page.post("/api/conversations", json={"title": WORD}).json()["id"]
        asked = {"client_message_id": str(uuid4()), "text": f"What is {WORD}?"}
        answer = page.post(f"/api/conversations/{talk}/messages?wait=60", json=asked)
        assert answer.status_code == 201 and WORD in answer.text
        assert tables_with(site, WORD) >= {"accounts_user", "chat_conversation", "chat_message"}
        assert files_with(site.folder, "engine: ready") == {"engine.log"}, "the search finds what is there"
        erased = page.post("/api/me/erase", json={"password": PASSWORD})
        assert erased.status_code == 202
        assert elsewhere.get("/api/conversations").status_code == 401
    assert tables_with(site, WORD) == set()
    assert files_with(site.folder, WORD) == set()
    receipt = erased.json()["receipt"]
    # As a worker would, when the stores that are told twice have had their time.
    site.sql(
        "UPDATE chat_erasurereceipt SET requested_at = now() - interval '1 minute' WHERE id = %s", receipt
    )
    code = "from chatsite.chat import receipts; from chatsite.loop import run"
    site.manage("shell", "-c", f"{code}; assert run(receipts.settle('{receipt}'))")
    told = httpx2.get(f"{site.url}/api/receipts/{receipt}").json()
    assert told["finished_at"] is not None
    assert tables_with(site, "leaver") == set()
