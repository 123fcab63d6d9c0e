"""Models and embeddings as the official client sees them."""

from __future__ import annotations

from typing import Any

import httpx2
import openai
import pytest

from tests.v1.test_bad_input import error_of

EMBED = "/v1/embeddings"


def test_models_are_listed_and_found_by_name(client: openai.OpenAI, model: str, embedder: str) -> None:
    assert [one.id for one in client.models.list()] == [model, embedder]
    found = client.models.retrieve(model)
    assert (found.id, found.object, found.owned_by) == (model, "model", "rill")
    assert found.created is not None


def test_an_unknown_model_is_not_found(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("somebody/nothing")


def test_floats_and_base64_are_the_same_vectors(client: openai.OpenAI, embedder: str) -> None:
    texts = ["first", "second"]
    floats = client.embeddings.create(model=embedder, input=texts, encoding_format="float")
    by_default = client.embeddings.create(model=embedder, input=texts)
    assert [one.index for one in floats.data] == [0, 1]
    for one, other in zip(floats.data, by_default.data, strict=True):
        assert one.embedding == pytest.approx(other.embedding)
    assert sum(value * value for value in floats.data[0].embedding) == pytest.approx(1, abs=1e-4)
    assert floats.usage.prompt_tokens > 0 and floats.usage.total_tokens == floats.usage.prompt_tokens


def test_base64_is_what_goes_over_the_wire_when_it_was_asked_for(http: httpx2.Client, embedder: str) -> None:
    body = {"model": embedder, "input": "text", "encoding_format": "base64"}
    assert isinstance(http.post("/v1/embeddings", json=body).json()["data"][0]["embedding"], str)


def test_as_many_texts_as_elsewhere_are_embedded_at_once(client: openai.OpenAI, embedder: str) -> None:
    """2,048 is what clients know; the engine takes fewer in one call."""
    texts = [f"text {number}" for number in range(2048)]
    many = client.embeddings.create(model=embedder, input=texts, encoding_format="float")
    assert [one.index for one in many.data] == list(range(2048))
    for place in (0, 511, 512, 2047):
        (alone,) = client.embeddings.create(model=embedder, input=texts[place], encoding_format="float").data
        assert many.data[place].embedding == pytest.approx(alone.embedding)
    assert many.usage.prompt_tokens > 2048


EMBEDDINGS = {
    "no model": ({"input": "x"}, 400, "model"),
    "no input": ({"model": "MODEL"}, 400, "input"),
    "an empty text": ({"model": "MODEL", "input": ""}, 400, "input"),
    "an empty text in a list": ({"model": "MODEL", "input": ["a", ""]}, 400, "input[1]"),
    "an empty list": ({"model": "MODEL", "input": []}, 400, "input"),
    "a chat model": ({"model": "scripted", "input": "x"}, 404, "model"),
    "an unknown format": ({"model": "MODEL", "input": "x", "encoding_format": "hex"}, 400, "encoding_format"),
    "other dimensions": ({"model": "MODEL", "input": "x", "dimensions": 7}, 400, "dimensions"),
    "too many": ({"model": "MODEL", "input": ["x"] * 3000}, 400, "input"),
    "objects": ({"model": "MODEL", "input": [{"a": 1}]}, 400, "input[0]"),
    "a long text": ({"model": "MODEL", "input": "x" * 300_000}, 413, "input"),
}


@pytest.mark.parametrize(("body", "status", "param"), EMBEDDINGS.values(), ids=EMBEDDINGS)
def test_embeddings_name_the_field_too(
    http: httpx2.Client, embedder: str, body: dict[str, Any], status: int, param: str
) -> None:
    sent = body | ({"model": embedder} if body.get("model") == "MODEL" else {})
    response = http.post(EMBED, json=sent)
    assert response.status_code == status
    assert error_of(response)["param"] == param


@pytest.mark.parametrize("tokens", [[1, 2, 3], [[1, 2], [3]]])
def test_token_arrays_are_refused_with_the_switch_that_helps(
    http: httpx2.Client, embedder: str, tokens: list
) -> None:
    response = http.post(EMBED, json={"model": embedder, "input": tokens})
    assert response.status_code == 400
    assert "check_embedding_ctx_length" in error_of(response)["message"]
