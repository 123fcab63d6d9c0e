"""SC-07: a stored answer is given as it was made, whichever way it was asked for and is asked for again."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from inference.testing import script_text
from tests.livesite import LiveSite

CHAT = "/v1/chat/completions"
WORDS = [f"word{number}" for number in range(390)]
TEXT = f"Here 😀:\n\n```python\nprint('héllo, 世界')\n```\n\n{' '.join(WORDS)} 👨‍👩‍👧 end"


@pytest.fixture
def ask(http: httpx2.Client, model: str) -> Any:
    def asking(question: str, *, stream: bool) -> httpx2.Response:
        body: dict[str, Any] = {"model": model, "messages": [{"role": "user", "content": question}]}
        if stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        return http.post(CHAT, json=body)

    return asking


def chunks_of(response: httpx2.Response) -> list[dict[str, Any]]:
    lines = [line for line in response.text.split("\n\n") if line and not line.startswith(":")]
    assert lines[-1] == "data: [DONE]"
    return [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]


def read(response: httpx2.Response, *, stream: bool) -> tuple[str, str, dict[str, int]]:
    """Text, finish reason and usage."""
    if not stream:
        whole = response.json()
        choice = whole["choices"][0]
        return choice["message"]["content"], choice["finish_reason"], whole["usage"]
    role, *content, last, usage = chunks_of(response)
    assert role["choices"][0]["delta"]["role"] == "assistant"
    assert len(content) > 1, "a replay comes in several pieces too"
    text = "".join(chunk["choices"][0]["delta"]["content"] for chunk in content)
    return text, last["choices"][0]["finish_reason"], usage["usage"]


@pytest.mark.parametrize("stored_by_stream", [True, False])
@pytest.mark.parametrize("read_by_stream", [True, False])
def test_an_answer_is_the_same_however_it_was_stored_and_is_read(
    ask: Any, stored_by_stream: bool, read_by_stream: bool
) -> None:
    question = script_text(text=f"{uuid4()} {TEXT}")
    first, second = ask(question, stream=stored_by_stream), ask(question, stream=read_by_stream)
    assert (first.headers["x-cache"], second.headers["x-cache"]) == ("miss", "hit-exact")
    made, replayed = read(first, stream=stored_by_stream), read(second, stream=read_by_stream)
    assert made[:2] == replayed[:2] and made[0].endswith(TEXT) and made[1] == "stop"
    assert made[2]["completion_tokens"] == replayed[2]["completion_tokens"] > 400


def test_a_replay_that_is_broken_off_leaves_the_entry_whole(
    ask: Any, http: httpx2.Client, model: str
) -> None:
    question = script_text(text=f"{uuid4()} {TEXT}")
    made = ask(question, stream=False).json()["choices"][0]["message"]["content"]
    body = {"model": model, "messages": [{"role": "user", "content": question}], "stream": True}
    with http.stream("POST", CHAT, json=body) as response:
        assert response.headers["x-cache"] == "hit-exact"
        next(response.iter_bytes())
    again = ask(question, stream=False)
    assert again.headers["x-cache"] == "hit-exact"
    assert again.json()["choices"][0]["message"]["content"] == made


@pytest.mark.parametrize("content", ["ab\\u0000cd", "ok \\ud83d end", "\\udc97", "\\ud83d\\ude00"])
def test_characters_that_no_database_holds_cost_one_request_at_most(
    http: httpx2.Client, model: str, content: str
) -> None:
    """DB-03."""
    body = f'{{"model": "{model}", "messages": [{{"role": "user", "content": "{content}"}}]}}'
    answer = http.post(CHAT, content=body.encode(), headers={"Content-Type": "application/json"})
    assert answer.status_code in (200, 400), answer.text
    if answer.status_code == 400:
        assert answer.json()["error"]["message"]
    elif content == "\\ud83d\\ude00":
        assert "😀" in answer.json()["choices"][0]["message"]["content"]
    assert answer.status_code == 200 or content != "\\ud83d\\ude00", "a whole pair is a character"


def test_an_answer_that_holds_a_nul_is_given_stored_and_given_again(ask: Any) -> None:
    """DB-03."""
    question = script_text(text=f"{uuid4()} a\x00b")
    first, second = (ask(question, stream=False) for _ in range(2))
    assert first.status_code == second.status_code == 200
    texts = [one.json()["choices"][0]["message"]["content"] for one in (first, second)]
    assert texts[1].replace("\x00", "") == texts[0].replace("\x00", "")


def test_what_was_imported_answers_the_first_question_of_any_key(
    site: LiveSite, http: httpx2.Client, model: str, tmp_path: Any
) -> None:
    """Imported by the command, found on /v1 with default parameters, by another person, and in a stream."""
    mark = f"Marmot{uuid4().int % 10_000}"
    question, answer = f"Which opening hours does {mark} keep?", "We open at nine. 😀\n\nAnd close at five."
    rule = "INSERT INTO semcache_cacherule ({}) SELECT {} FROM semcache_cacherule LIMIT 1"
    names = (
        "SELECT column_name FROM information_schema.columns"
        " WHERE table_name = 'semcache_cacherule' AND column_name <> 'id'"
    )
    columns = [str(name) for (name,) in site.sql(names)]
    fixed = {
        "name": f"'{mark}'", "pattern": f"'{mark}'", "keywords": "'{}'", "examples": "'{}'", "priority": "-1",
        "sharing": "'public'", "mode": "'semantic'", "tenant": "''", "model": "''", "is_enabled": "true",
        "ttl_s": "3600", "capacity": "100",
    }  # fmt: skip
    site.sql(rule.format(", ".join(columns), ", ".join(fixed.get(name, name) for name in columns)))
    file = tmp_path / "answers.jsonl"
    file.write_text(json.dumps({"question": question, "answer": answer}) + "\n")
    assert "1 stored, 0 refused" in site.manage("cache_import", str(file), f"--rule={mark}")
    body = {"model": model, "messages": [{"role": "user", "content": question}]}
    other = {"Authorization": f"Bearer {site.key('bea')}"}
    for headers in ({}, other):
        found = http.post(CHAT, json=body, headers=headers)
        assert found.headers["x-cache"] == "hit-exact", found.text
        assert found.json()["choices"][0]["message"]["content"] == answer
    streamed = http.post(CHAT, json=body | {"stream": True, "stream_options": {"include_usage": True}})
    assert read(streamed, stream=True)[:2] == (answer, "stop")
