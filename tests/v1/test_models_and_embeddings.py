"""Models and embeddings as the official client sees them."""

from __future__ import annotations

import httpx2
import openai
import pytest


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
