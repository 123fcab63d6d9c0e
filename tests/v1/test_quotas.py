"""Quotas as API clients meet them: headers, the warning, the refusal, and what comes back when there was no room."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import httpx2
import openai
import pytest

from inference.testing import script_text
from tests.livesite import LiveSite

CHAT = "/v1/chat/completions"
YEAR = 366 * 86_400  # a window that does not end while a test runs
DURATION = re.compile(r"(\d+h)?(\d+m)?\d+(s|ms)")


class Person:
    """Somebody with a key and quotas of their own."""

    def __init__(self, site: LiveSite, model: str, **quota: int) -> None:
        self.site, self.model = site, model
        self.name = f"quota-{uuid4().hex[:8]}"
        self.key = site.key(self.name)
        self.id = site.user(self.name)
        self.http = httpx2.Client(
            base_url=site.url, headers={"Authorization": f"Bearer {self.key}"}, timeout=60
        )
        if quota:
            self.limit(**quota)

    def limit(self, **quota: int) -> None:
        """Nobody starts anything anew: the next admission reads it."""
        self.site.sql(
            "INSERT INTO accounts_quota (applies, user_id, window_s, max_requests, max_tokens) "
            "VALUES ('user', %s, %s, %s, %s)",
            self.id,
            quota.get("window_s", YEAR),
            quota.get("max_requests"),
            quota.get("max_tokens"),
        )

    def ask(self, text: str = "hi", **fields: Any) -> httpx2.Response:
        body = {"model": self.model, "messages": [{"role": "user", "content": text}]} | fields
        return self.http.post(CHAT, json=body)

    def standing(self) -> dict[str, Any]:
        (one,) = self.http.get("/api/quota").json()
        return dict(one)

    def booked(self) -> tuple[int, int]:
        ((rows, tokens),) = self.site.sql(
            "SELECT count(*), coalesce(sum(prompt_tokens + generated_tokens), 0) FROM accounts_usagerecord "
            "WHERE user_id = %s",
            self.id,
        )
        return int(str(rows)), int(str(tokens))

    def counted(self) -> tuple[int, int]:
        one = self.standing()
        assert one["tokens"]["reserved"] == 0
        return one["requests"]["used"], one["tokens"]["used"]


@pytest.fixture
def make_person(site: LiveSite, model: str) -> Iterator[Any]:
    people: list[Person] = []

    def make(**quota: int) -> Person:
        people.append(Person(site, model, **quota))
        return people[-1]

    yield make
    for person in people:
        person.http.close()


def limits_of(response: httpx2.Response) -> dict[str, str]:
    return {name: value for name, value in response.headers.items() if name.startswith("x-ratelimit-")}


def test_answers_tell_the_limits_in_openais_forms_and_warn_from_eighty_percent(make_person: Any) -> None:
    person = make_person(max_requests=5, max_tokens=1_000_000)
    told = []
    for streams in (False, True, False, False, True):
        response = person.ask(stream=streams)
        assert response.status_code == 200
        limits = limits_of(response)
        assert len(limits) == 6 and limits["x-ratelimit-limit-tokens"] == "1000000"
        assert all(DURATION.fullmatch(limits[f"x-ratelimit-reset-{kind}"]) for kind in ("requests", "tokens"))
        told.append(
            (limits["x-ratelimit-remaining-requests"], response.headers.get("x-quota-warning", "")[:3])
        )
    assert told == [("4", ""), ("3", ""), ("2", ""), ("1", "80%"), ("0", "100")]


def test_who_has_no_quota_is_told_of_none(make_person: Any) -> None:
    person = make_person()
    assert limits_of(person.ask()) == {} and person.http.get("/api/quota").json() == []


def test_a_used_up_quota_is_a_429_with_a_time(make_person: Any, site: LiveSite, model: str) -> None:
    """AP-04: an error object with Retry-After, whole and streamed; the official client raises its class."""
    person = make_person(max_requests=1, window_s=86_400)
    assert person.ask().status_code == 200
    for streams in (False, True):
        response = person.ask(stream=streams)
        error = response.json()["error"]
        assert (response.status_code, error["code"], error["type"]) == (
            429,
            "quota_exceeded",
            "rate_limit_error",
        )
        assert "1 of 1 requests" in error["message"] and "this account" in error["message"]
        assert 0 < int(response.headers["retry-after"]) <= 86_400
        assert limits_of(response)["x-ratelimit-remaining-requests"] == "0"
    with (
        openai.OpenAI(base_url=f"{site.url}/v1", api_key=person.key, max_retries=0) as official,
        pytest.raises(openai.RateLimitError),
    ):
        official.chat.completions.create(model=model, messages=[{"role": "user", "content": "hi"}])
    assert person.standing()["requests"] == {"limit": 1, "used": 1, "left": 0}
    assert person.standing()["is_warning"] is True


def test_a_changed_quota_counts_from_the_next_question_on(make_person: Any, site: LiveSite) -> None:
    person = make_person(max_requests=1)
    assert [person.ask().status_code for _ in range(2)] == [200, 429]
    site.sql("UPDATE accounts_quota SET max_requests = 2 WHERE user_id = %s", person.id)
    assert [person.ask().status_code for _ in range(2)] == [200, 429]
    site.sql("DELETE FROM accounts_quota WHERE user_id = %s", person.id)
    assert person.ask().status_code == 200


def test_many_at_once_get_exactly_what_is_left(make_person: Any) -> None:
    person = make_person(max_requests=6)
    with ThreadPoolExecutor(12) as threads:
        came_to = list(threads.map(lambda n: person.ask(n=2).status_code, range(12)))
    assert sorted(came_to) == [200] * 3 + [429] * 9
    assert person.standing()["requests"]["used"] == 6


def test_every_end_leaves_the_counters_as_the_ledger_has_them(make_person: Any) -> None:
    person = make_person(max_requests=1000, max_tokens=1_000_000)
    question = f"What is {uuid4()}?"
    assert [person.ask(question).headers["x-cache"] for _ in range(2)] == ["miss", "hit-exact"]
    assert person.ask(n=3).status_code == 200
    assert person.ask(max_tokens=2, service_tier="flex").status_code == 200
    assert person.ask(script_text(text="one two three", fail_after=2)).status_code == 500
    assert (
        person.http.post("/v1/completions", json={"model": person.model, "prompt": "hi"}).status_code == 200
    )
    assert person.http.post("/v1/responses", json={"model": person.model, "input": "hi"}).status_code == 200
    assert person.counted() == person.booked()
    assert person.booked()[0] == 9


def test_a_client_that_goes_away_pays_for_what_was_made(make_person: Any) -> None:
    person = make_person(max_requests=1000, max_tokens=1_000_000)
    body = {
        "model": person.model,
        "messages": [{"role": "user", "content": script_text(tokens=500, delay_ms=10)}],
        "stream": True,
    }
    with person.http.stream("POST", CHAT, json=body) as response:
        for number, _line in enumerate(response.iter_lines()):
            if number == 20:
                break
    while person.standing()["tokens"]["reserved"]:
        pass
    assert person.counted() == person.booked()
    assert person.booked()[1] > 10


def test_what_can_not_be_answered_counts_a_request_and_no_tokens(make_person: Any) -> None:
    person = make_person(max_requests=1000, max_tokens=1_000_000)
    assert person.ask(cache={"only-if-cached": True}).status_code == 504
    assert person.ask("x" * 150_000, truncation="disabled").status_code == 400
    assert person.ask(temperature=9).status_code == 400, "refused before it was counted"
    assert person.counted() == (2, 0)


def test_embeddings_count_requests_and_tokens(make_person: Any, embedder: str) -> None:
    person = make_person(max_requests=2, max_tokens=1_000_000)
    body = {"model": embedder, "input": ["one text", "another one"]}
    first = person.http.post("/v1/embeddings", json=body)
    assert first.status_code == 200 and limits_of(first)["x-ratelimit-remaining-requests"] == "1"
    assert person.counted() == person.booked() == (1, first.json()["usage"]["total_tokens"])
    assert [person.http.post("/v1/embeddings", json=body).status_code for _ in range(2)] == [200, 429]


def test_a_keys_quota_binds_that_key_only(site: LiveSite, make_person: Any) -> None:
    person = make_person()
    other = site.key(person.name)
    site.sql(
        "INSERT INTO accounts_quota (applies, api_key_id, window_s, max_requests) "
        "SELECT 'key', id, %s, 1 FROM accounts_apikey WHERE prefix = %s",
        YEAR,
        person.key[:13],
    )
    assert [person.ask().status_code for _ in range(2)] == [200, 429]
    person.http.headers["Authorization"] = f"Bearer {other}"
    assert person.ask().status_code == 200
    assert json.dumps(person.http.get("/api/quota").json()) == "[]"
