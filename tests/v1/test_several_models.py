"""Two engines with two models behind one door: each question goes to the model that it names."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import httpx2
import openai
import pytest

from inference.testing.script import script_text
from tests.livesite import LiveSite, live_site
from tests.patience import PATIENCE_S
from tests.site.test_health import eventually, samples
from tests.v1.test_bad_input import error_of

MODELS = ("river", "stone")
CHAT = "/v1/chat/completions"
MANY = 300
LONG = script_text(text="so ", tokens=MANY)
NOT_CACHED = {"cache": {"no_cache": True, "no_store": True}}


@pytest.fixture(scope="module")
def site() -> Iterator[LiveSite]:
    with live_site("several", models=MODELS, SEMCACHE_BUDGET_MS="5000") as running:
        yield running


@pytest.fixture(scope="module")
def key(site: LiveSite) -> str:
    return site.key("ann")


def body(model: str, text: str, **fields: Any) -> dict[str, Any]:
    return {"model": model, "messages": [{"role": "user", "content": text}], "temperature": 0, **fields}


def made(site: LiveSite) -> dict[str, float]:
    """Tokens that each model made."""
    counted = samples(site)
    return {
        dict(labels)["model"]: number
        for (name, labels), number in counted.items()
        if name == "rill_generated_tokens_total"
    }


def answered_by(http: httpx2.Client, site: LiveSite, asked: dict[str, Any], path: str = CHAT) -> str:
    """The model whose engine made the many tokens of this; probes make some in each."""
    before = made(site)
    response = http.post(path, json=asked | NOT_CACHED)
    assert response.status_code == 200, response.text
    after = made(site)
    (grown,) = [model for model in MODELS if after[model] - before[model] > MANY / 3]
    assert response.json()["model"] == grown
    return grown


def test_every_model_is_listed_and_one_embedder(client: openai.OpenAI) -> None:
    listed = [one.id for one in client.models.list()]
    assert listed[:2] == [*MODELS] and len(listed) == 3, "both engines have the same embedder"
    assert [client.models.retrieve(name).id for name in listed] == listed
    vectors = client.embeddings.create(model=listed[2], input=["text"])
    assert len(vectors.data) == 1
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("sand")


def test_a_question_goes_to_the_engine_of_its_model(http: httpx2.Client, site: LiveSite) -> None:
    for model in (*MODELS, *MODELS):
        assert answered_by(http, site, body(model, LONG)) == model
        raw = {"model": model, "prompt": LONG, "max_tokens": MANY}
        assert answered_by(http, site, raw, "/v1/completions") == model
        assert answered_by(http, site, {"model": model, "input": LONG}, "/v1/responses") == model


def test_a_model_that_nobody_serves_is_not_found(http: httpx2.Client) -> None:
    response = http.post(CHAT, json=body("sand", "who?"))
    assert response.status_code == 404 and error_of(response)["code"] == "model_not_found"


def test_what_one_model_said_is_no_answer_of_the_other(http: httpx2.Client) -> None:
    def cache_of(model: str) -> str:
        return http.post(CHAT, json=body(model, "Is this kept apart?")).headers["X-Cache"]

    assert [cache_of(model) for model in ("river", "river", "stone", "stone")] == [
        "miss", "hit-exact", "miss", "hit-exact",
    ]  # fmt: skip


def test_a_stream_that_is_left_ends_in_the_engine_that_makes_it(site: LiveSite, http: httpx2.Client) -> None:
    asked = body("stone", script_text(text="on and on ", tokens=2000, delay_ms=20), stream=True)
    with http.stream("POST", CHAT, json=asked) as response:
        next(response.iter_lines())

    def is_idle() -> bool:
        return all(number == 0 for (name, _), number in samples(site).items() if name == "rill_running_batch")

    eventually(is_idle)


def test_health_and_metrics_tell_the_engines_apart(site: LiveSite) -> None:
    ready = httpx2.get(f"{site.url}/health/ready", timeout=PATIENCE_S).json()
    assert ready["engines"] == [{"is_ok": True, "reason": ""}] * 2
    labels = [dict(labels) for (name, labels) in samples(site) if name == "rill_engine_up"]
    assert [one["model"] for one in labels] == [*MODELS]
    assert [one["engine"] for one in labels] == site.environ["ENGINE_ADDRESS"].split(",")


def test_an_engine_that_is_down_takes_only_its_own_model_with_it() -> None:
    with live_site("half", models=MODELS, SEMCACHE_BUDGET_MS="5000") as site:
        headers = {"Authorization": f"Bearer {site.key('ann')}"}
        with httpx2.Client(base_url=site.url, headers=headers, timeout=PATIENCE_S) as http:
            _left_with_one(site, http)


def _left_with_one(site: LiveSite, http: httpx2.Client) -> None:
    river, stone = site.engines
    stone.send_signal(signal.SIGTERM)
    stone.wait(20)
    response = http.post(CHAT, json=body("stone", "are you there?"))
    assert response.status_code == 503 and error_of(response)["code"] == "engine_unavailable"
    assert http.post(CHAT, json=body("river", "are you there?")).status_code == 200
    assert [one["id"] for one in http.get("/v1/models").json()["data"]][:2] == [*MODELS], "it comes back"
    ready = http.get("/health/ready")
    assert ready.status_code == 200 and [one["is_ok"] for one in ready.json()["engines"]] == [True, False]
    river.send_signal(signal.SIGTERM)
    river.wait(20)
    gone = http.get("/health/ready")
    assert gone.status_code == 503 and not gone.json()["checks"]["engine"]["is_ok"]
