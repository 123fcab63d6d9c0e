"""Which class of the engine's queue a request asks for."""

from __future__ import annotations

import httpx2
import pytest

from chatsite.chat.reply import engine_request
from chatsite.chat.turn import Caller
from chatsite.v1.errors import ApiError
from chatsite.v1.schema import parse_chat
from chatsite.v1.turns import chat_turns
from inference.types import EngineInfo

INFO = EngineInfo(
    "e", "m", "r", "t", 100, 100, "fp32", "cpu", "", 0, 1, is_trial_model=False, default_temperature=0.0
)


def is_offline(service_tier: str | None) -> bool:
    body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "service_tier": service_tier}
    return engine_request(chat_turns(parse_chat(body), "", Caller(1, "1"), INFO)[0]).is_offline


def test_flex_work_fills_what_people_leave_free() -> None:
    assert is_offline("flex")


@pytest.mark.parametrize("service_tier", [None, "auto", "default", "priority", "scale"])
def test_every_other_tier_is_that_of_people(service_tier: str | None) -> None:
    assert not is_offline(service_tier)


def test_an_unknown_tier_is_refused() -> None:
    with pytest.raises(ApiError) as refused:
        is_offline("first class")
    assert (refused.value.status, refused.value.param) == (400, "service_tier")


def test_a_flex_request_is_answered_and_nothing_of_it_is_ignored(http: httpx2.Client, model: str) -> None:
    body = {"model": model, "messages": [{"role": "user", "content": "Hi"}], "service_tier": "flex"}
    response = http.post("/v1/chat/completions", json=body)
    assert response.status_code == 200 and "x-ignored-fields" not in response.headers
