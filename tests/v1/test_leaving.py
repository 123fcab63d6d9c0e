"""A client that goes away ends its answer at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import httpx2
import pytest

from inference.testing import script_text
from tests.livesite import LiveSite
from tests.patience import PATIENCE_S

CHAT = "/v1/chat/completions"


def wait_for(is_so: Callable[[], bool]) -> None:
    give_up_at = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < give_up_at, "it did not come true"
        time.sleep(0.05)


def states(site: LiveSite) -> list[str]:
    """States of the answers that were asked for without a conversation, the latest first."""
    return [str(row[0]) for row in site.sql("SELECT state FROM chat_generation ORDER BY created_at DESC")]


def running(site: LiveSite) -> float:
    """Sequences in the engine's batch."""
    for line in httpx2.get(f"{site.url}/metrics").text.splitlines():
        if line.startswith("rill_running_batch "):
            return float(line.split()[1])
    raise AssertionError("the gauge is missing")


@pytest.mark.parametrize("num_choices", [1, 3])
@pytest.mark.parametrize("streams", [True, False])
def test_closing_the_request_frees_the_engine(
    site: LiveSite, key: str, model: str, streams: bool, num_choices: int
) -> None:
    endless = script_text(tokens=5000, delay_ms=20)
    messages = [{"role": "user", "content": f"{endless}"}]
    body = {"model": model, "messages": messages, "stream": streams, "n": num_choices}
    client = httpx2.Client(base_url=site.url, headers={"Authorization": f"Bearer {key}"}, timeout=PATIENCE_S)
    if streams:
        with client.stream("POST", CHAT, json=body) as response:
            for _ in zip(range(5), response.iter_lines(), strict=False):
                pass
    else:
        failures: list[Exception] = []

        def ask() -> None:
            try:
                client.post(CHAT, json=body, timeout=httpx2.Timeout(PATIENCE_S, read=1.0))
            except httpx2.TransportError as error:
                failures.append(error)

        thread = threading.Thread(target=ask)
        thread.start()
        thread.join()
        assert failures
    client.close()
    wait_for(lambda: running(site) == 0)
    wait_for(lambda: states(site)[:num_choices] == ["stopped"] * num_choices)
