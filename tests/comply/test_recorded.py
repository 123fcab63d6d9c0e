"""What clients send, form by form, and that each is answered as the client reads it.

LangChain's and llm's requests were taken from the wire; the others' are written after the sources of the versions that
`client` names, which were read and not run (`source` says what was found).
CHAT and EMBEDDER stand for the served models.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

FOLDER = Path(__file__).resolve().parent / "recorded"


def recorded() -> Iterator[Any]:
    for file in sorted(FOLDER.glob("*.json")):
        for number, request in enumerate(json.loads(file.read_text())["requests"]):
            yield pytest.param(request, id=f"{file.stem}-{number}")


@pytest.mark.parametrize("request_form", list(recorded()))
def test_a_client_s_request_is_answered_as_it_reads_it(
    http: httpx2.Client, models: tuple[str, str], request_form: dict[str, Any]
) -> None:
    body = request_form.get("body")
    if body is not None:
        body = body | {"model": {"CHAT": models[0], "EMBEDDER": models[1]}[body["model"]]}
    response = http.request(
        request_form["method"], request_form["path"], headers=request_form["headers"], json=body
    )
    if "refused" in request_form:
        refused, error = request_form["refused"], response.json()["error"]
        assert (response.status_code, error["code"]) == (refused["status"], refused["code"])
        assert refused["names"] in error["message"]
        return
    assert response.status_code == 200, response.text
    for name in request_form.get("ignores", ()):
        assert name in response.headers["X-Ignored-Fields"]
    if body is None:
        assert [model["id"] for model in response.json()["data"]] == list(models)
    elif request_form["path"] == "/v1/responses":
        check_events(response)
    elif body.get("stream"):
        check_stream(response, body)
    elif "messages" in body:
        (choice,) = response.json()["choices"]
        assert choice["message"]["content"] and choice["finish_reason"] == "stop"
    else:
        assert len(response.json()["data"]) == len(body["input"])


def check_stream(response: httpx2.Response, body: dict[str, Any]) -> None:
    """Every reader's needs at once: choices in all chunks but that of the usage, one reason, usage where asked for."""
    lines = [line for line in response.text.split("\n\n") if line and not line.startswith(":")]
    assert lines[-1] == "data: [DONE]"
    chunks = [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]
    wants_usage = body.get("stream_options", {}).get("include_usage", False)
    *pieces, last = chunks
    if wants_usage:
        assert last["choices"] == [] and last["usage"]["total_tokens"] > 0
    else:
        pieces.append(last)
        assert not any(chunk.get("usage") for chunk in chunks)
    assert len({chunk["id"] for chunk in chunks}) == 1
    choices = [chunk["choices"][0] for chunk in pieces]
    reasons = [choice["finish_reason"] for choice in choices]
    assert reasons[-1] in ("stop", "length") and set(reasons[:-1]) == {None}
    texts = [choice.get("text") or choice.get("delta", {}).get("content") or "" for choice in choices]
    assert "".join(texts)


def check_events(response: httpx2.Response) -> None:
    """Typed events that count up, from the response's beginning to its end with the whole text and usage."""
    blocks = [block for block in response.text.split("\n\n") if block and not block.startswith(":")]
    events = [json.loads(block.split("data: ", 1)[1]) for block in blocks]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert events[0]["type"] == "response.created" and events[-1]["type"] == "response.completed"
    pieces = [event["delta"] for event in events if event["type"] == "response.output_text.delta"]
    whole = events[-1]["response"]
    assert whole["output"][0]["content"][0]["text"] == "".join(pieces) != ""
    assert whole["usage"]["output_tokens"] > 0
