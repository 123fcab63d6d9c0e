"""`/api/usage` over HTTP: what was asked is there at once, grouped as asked, one's own only, and as a table."""

from __future__ import annotations

import csv
import io

import httpx2

from tests.livesite import LiveSite
from tests.patience import PATIENCE_S

CHAT = {"model": "scripted", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 4}


def test_what_was_asked_is_in_the_report_by_key_model_and_kind(site: LiveSite, embedder: str) -> None:
    asked_with, read_with = site.key("user-of-much", "chat", "embeddings"), site.key("user-of-much", "usage")
    site.sql(
        """INSERT INTO accounts_price (model, valid_from, currency, per_million_prompt, per_million_reused,
           per_million_generated, per_device_hour) VALUES ('*', now() - interval '1 day', 'EUR', 1, 0, 2, 0)
           ON CONFLICT DO NOTHING"""
    )
    with httpx2.Client(
        base_url=site.url, headers={"Authorization": f"Bearer {asked_with}"}, timeout=60
    ) as http:
        told = [http.post("/v1/chat/completions", json=CHAT | {"seed": n}).json()["usage"] for n in range(2)]
        vectors = http.post("/v1/embeddings", json={"model": embedder, "input": "a text"}).json()["usage"]
    headers = {"Authorization": f"Bearer {read_with}"}
    with httpx2.Client(base_url=site.url, headers=headers, timeout=PATIENCE_S) as http:
        found = http.get("/api/usage", params={"group_by": "key,kind", "days": 1}).json()
        by_kind = {line["kind"]: line for line in found["lines"]}
        answers, embeddings = by_kind["answer"], by_kind["embedding"]
        assert answers["answers"] == 2 and embeddings["embeddings"] == 1
        assert answers["prompt_tokens"] == sum(usage["prompt_tokens"] for usage in told)
        assert answers["generated_tokens"] == sum(usage["completion_tokens"] for usage in told)
        assert embeddings["prompt_tokens"] == vectors["prompt_tokens"]
        assert answers["key"].startswith(asked_with[:13]) and "day" not in answers
        cost = (answers["prefilled_tokens"] + 2 * answers["generated_tokens"]) / 1e6
        assert (float(answers["cost"]), answers["currency"]) == (cost, "EUR")
        (total,) = found["totals"]
        assert total["answers"] == 2 and not found["is_cut"]
        table = http.get("/api/usage.csv", params={"group_by": "kind", "days": 1})
        assert table.headers["content-type"].startswith("text/csv")
        rows = list(csv.DictReader(io.StringIO(table.text.removeprefix("\ufeff"))))
        assert {row["kind"]: row["answers"] for row in rows} == {"answer": "2", "embedding": "0"}
        for wrong in ({"group_by": "user"}, {"group_by": "x" * 500}, {"days": 0}, {"days": "9" * 40}):
            refused = http.get("/api/usage", params=wrong)
            assert refused.status_code == 400 and refused.json()["error"]["code"].startswith("invalid"), wrong
        assert http.get("/api/usage/all").json()["error"]["code"] == "session_required"
