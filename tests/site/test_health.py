"""Health tells the truth, and the numbers are for this host and for the token only."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from django.test import RequestFactory
from prometheus_client.parser import text_string_to_metric_families

from chatsite import health, metrics
from chatsite.engine_metrics import EngineMetrics, Told
from tests.livesite import LiveSite
from tests.patience import PATIENCE_S

EXPECTED = {
    "rill_queue_length", "rill_running_batch", "rill_steps", "rill_ttft_seconds", "rill_tpot_seconds",
    "rill_reused_tokens", "rill_generated_tokens", "rill_cache_lookups", "rill_blocks", "rill_refusals",
    "rill_core_restarts", "rill_live_replies", "rill_open_sockets", "process_resident_memory_bytes",
}  # fmt: skip


def eventually(is_so: Callable[[], bool], limit_s: float = PATIENCE_S) -> None:
    give_up_at = time.monotonic() + limit_s
    while not is_so():
        assert time.monotonic() < give_up_at, "it did not come true"
        time.sleep(0.1)


def samples(site: LiveSite) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    text = httpx2.get(f"{site.url}/metrics", timeout=PATIENCE_S).text
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(site: LiveSite, name: str, **labels: str) -> float:
    return samples(site).get((name, frozenset(labels.items())), 0.0)


def ask(site: LiveSite, key: str, text: str) -> httpx2.Response:
    body = {"model": "scripted", "messages": [{"role": "user", "content": text}], "temperature": 0}
    headers = {"Authorization": f"Bearer {key}"}
    return httpx2.post(f"{site.url}/v1/chat/completions", json=body, headers=headers, timeout=PATIENCE_S)


def test_live_and_ready_say_so(site: LiveSite) -> None:
    assert httpx2.get(f"{site.url}/health/live").json() == {"status": "live"}
    body = httpx2.get(f"{site.url}/health/ready", timeout=PATIENCE_S).json()
    assert body["status"] == "ready"
    assert set(body["checks"]) == {"engine", "database", "web"}
    assert all(check == {"is_ok": True, "reason": ""} for check in body["checks"].values())


def test_an_engine_that_makes_no_tokens_is_not_ready(site: LiveSite) -> None:
    def ready() -> httpx2.Response:
        return httpx2.get(f"{site.url}/health/ready", timeout=PATIENCE_S)

    os.kill(site.engine.pid, signal.SIGSTOP)
    try:
        eventually(lambda: ready().status_code == 503)
        assert ready().json()["checks"]["engine"]["reason"]
        assert httpx2.get(f"{site.url}/health/live").status_code == 200
        assert value(site, "rill_engine_up") == 0
    finally:
        os.kill(site.engine.pid, signal.SIGCONT)
    eventually(lambda: ready().status_code == 200)


async def test_a_database_that_is_away_is_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    async def away(*_: Any) -> None:
        from django.db import OperationalError

        raise OperationalError("secret address")

    monkeypatch.setattr(health, "run_in_db", away)
    assert await health._database_trouble() == "the database does not answer"


async def test_a_process_that_drains_is_not_ready(
    monkeypatch: pytest.MonkeyPatch, rf: RequestFactory
) -> None:
    async def fine() -> str:
        return ""

    async def all_fine() -> list[str]:
        return [""]

    monkeypatch.setattr(health, "_engine_troubles", all_fine)
    monkeypatch.setattr(health, "_database_trouble", fine)
    monkeypatch.setattr(health, "_process", health._Process())
    assert (await health.ready(rf.get("/health/ready"))).status_code == 200
    health.start_draining()
    assert (await health.ready(rf.get("/health/ready"))).status_code == 503


def test_every_promised_number_is_there(site: LiveSite) -> None:
    text = httpx2.get(f"{site.url}/metrics", timeout=PATIENCE_S).text
    families = {family.name for family in text_string_to_metric_families(text)}
    assert not EXPECTED - families


def test_answers_are_counted_where_they_came_from(site: LiveSite) -> None:
    key, question = site.key("counted"), f"count {time.time()}"
    before = samples(site)

    def grown(name: str, **labels: str) -> float:
        at = (name, frozenset(labels.items()))
        return samples(site).get(at, 0.0) - before.get(at, 0.0)

    ask(site, key, question)
    assert grown("rill_replies_total", door="v1", state="complete", origin="model") == 1
    assert grown("rill_cache_lookups_total", outcome="miss") == 1
    assert grown("rill_ttft_seconds_count", origin="model") == 1
    assert grown("rill_tpot_seconds_count") == 1
    assert grown("rill_reply_generated_tokens_total") > 0
    ask(site, key, question)
    assert grown("rill_replies_total", door="v1", state="complete", origin="exact") == 1
    assert grown("rill_cache_lookups_total", outcome="hit-exact") == 1
    ask(site, "wrong", question)
    assert (
        grown("rill_refusals_total", code="other") + grown("rill_refusals_total", code="unauthenticated") == 1
    )


def test_labels_have_a_bound() -> None:
    def num_series() -> int:
        return metrics.render(EngineMetrics([Told("x", "", None)])).count(b"\n")

    metrics.observe_refusal("first")
    before = num_series()
    for number in range(200):
        metrics.observe_refusal(f"code-{number}")
        metrics.observe_lookup(f"outcome-{number}")
    assert num_series() <= before + 2


@pytest.mark.parametrize(
    ("address", "headers", "may_read"),
    [
        ("127.0.0.1", {}, True),
        ("::1", {}, True),
        ("10.0.0.5", {}, False),
        ("", {}, False),
        ("127.0.0.1", {"X-Forwarded-For": "203.0.113.1"}, False),
        ("127.0.0.1", {"Forwarded": "for=203.0.113.1"}, False),
        ("10.0.0.5", {"Authorization": "Bearer right"}, True),
        ("10.0.0.5", {"Authorization": "Bearer wrong"}, False),
        ("10.0.0.5", {"Authorization": "Bearer "}, False),
        ("10.0.0.5", {"Authorization": "Bearer é"}, False),
    ],
)
def test_metrics_are_for_this_host_or_the_token(
    rf: RequestFactory, monkeypatch: pytest.MonkeyPatch, address: str, headers: dict[str, str], may_read: bool
) -> None:
    from dataclasses import replace

    from django.conf import settings

    monkeypatch.setattr(settings, "CONFIG", replace(settings.CONFIG, metrics_token="right"))
    assert health.may_read_metrics(rf.get("/metrics", headers=headers, REMOTE_ADDR=address)) is may_read
    monkeypatch.setattr(settings, "CONFIG", replace(settings.CONFIG, metrics_token=""))
    is_local = may_read and "Authorization" not in headers
    assert health.may_read_metrics(rf.get("/metrics", headers=headers, REMOTE_ADDR=address)) is is_local
