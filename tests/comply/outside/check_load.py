"""A public load client: fifty people at once for twenty seconds, and no request fails."""

from __future__ import annotations

import json
from typing import Any

from tests.comply.outside.programs import run
from tests.livesite import LiveSite

SCRIPT = "tests/bench/load/locustfile.py"


def test_locust_finds_no_failure(site: LiveSite, key: str, models: tuple[str, str]) -> None:
    how = ["--headless", "-u", "50", "-r", "25", "-t", "20s", "--only-summary", "--json", "--skip-log"]
    environ = {"COMPLY_KEY": key, "COMPLY_MODELS": " ".join(models)}
    done = run(["locust", "-f", SCRIPT, "-H", site.url, *how], environ=environ)
    rows: list[dict[str, Any]] = json.loads(done.stdout)
    by_name = {row["name"]: row for row in rows}
    assert set(by_name) == {"stream", "first text", "whole", "embedding"}
    assert {row["name"]: row["num_failures"] for row in rows if row["num_failures"]} == {}
    assert done.returncode == 0, done.stderr[-4000:]
    assert by_name["first text"]["num_requests"] >= by_name["stream"]["num_requests"] > 0
    for name, row in by_name.items():
        mean = row["total_response_time"] / row["num_requests"]
        print(
            f"{name}: {row['num_requests']} requests, mean {mean:.0f} ms, longest {row['max_response_time']:.0f} ms"
        )
