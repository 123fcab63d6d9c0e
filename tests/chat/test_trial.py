"""Staff's own trial of the model: its answer comes by the budget's way, at nobody's cost, and leaves nothing behind."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import msgspec
import pytest

from chatsite.accounts.models import Tenant, UsageRecord, User
from chatsite.chat import again, trial
from chatsite.chat.models import Generation
from chatsite.db import run_in_db
from inference.client import EngineClient
from inference.errors import (
    ContextLengthExceeded,
    EngineError,
    EngineUnavailable,
    ModelLoading,
    QueueFull,
)
from inference.testing import script_text
from inference.types import GenerateRequest, Owner
from semcache.lending import NotMade, WhyNot
from semcache.models import CacheEntry, CacheFlight

pytestmark = pytest.mark.usefixtures("stale_site")

ASKED = script_text(text="Both of them.")


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[GenerateRequest]:
    """What was put to the engine."""
    submit, heard = EngineClient.submit, []

    async def hearing(self: Any, request: GenerateRequest) -> Any:
        heard.append(request)
        return await submit(self, request)

    monkeypatch.setattr(EngineClient, "submit", hearing)
    return heard


async def test_the_model_answers_greedily_and_nobody_is_charged(
    user: User, requests: list[GenerateRequest]
) -> None:
    run = uuid4()
    answer = await trial.answered(run, ASKED, str(user.tenant_id), "")
    assert (answer.text, answer.is_complete) == ("Both of them.", True)
    (request,) = requests
    assert request.sampling.temperature == 0.0 and request.is_offline
    booked = await run_in_db(UsageRecord.objects.get, generation=run)
    assert (booked.user_id, booked.origin, booked.tenant_id) == (None, "again", user.tenant_id)
    for table in (Generation, CacheEntry, CacheFlight):
        assert await run_in_db(table.objects.count) == 0


@pytest.mark.parametrize("trouble", [None, EngineUnavailable("away"), QueueFull("full")])
async def test_its_words_are_nobodys_and_forgotten(
    user: User,
    requests: list[GenerateRequest],
    monkeypatch: pytest.MonkeyPatch,
    trouble: EngineError | None,
) -> None:
    forgotten: list[Owner] = []

    async def forgetting(self: Any, owner: Owner) -> int:
        forgotten.append(owner)
        if trouble is not None:
            raise trouble
        return 1

    monkeypatch.setattr(EngineClient, "forget", forgetting)
    assert (await trial.answered(uuid4(), ASKED, str(user.tenant_id), "")).text == "Both of them."
    assert forgotten == [requests[0].owner]
    assert forgotten[0].user.startswith("trial:")


@pytest.mark.parametrize("named", ["", "default", "999999", "-1", "9" * 40])
async def test_a_business_line_that_does_not_exist_is_the_default_one(user: User, named: str) -> None:
    run = uuid4()
    assert (await trial.answered(run, ASKED, named, "")).is_complete
    default = await run_in_db(Tenant.objects.default)
    assert (await run_in_db(UsageRecord.objects.get, generation=run)).tenant_id == default.pk


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (EngineUnavailable("away"), WhyNot.AWAY),
        (ModelLoading("soon"), WhyNot.AWAY),
        (QueueFull("full"), WhyNot.BUSY),
        (ContextLengthExceeded("long"), WhyNot.REFUSED),
    ],
)
async def test_why_there_is_no_answer_is_told(
    user: User, monkeypatch: pytest.MonkeyPatch, error: EngineError, why: WhyNot
) -> None:
    async def refusing(self: Any, request: GenerateRequest) -> Any:
        raise error

    monkeypatch.setattr(EngineClient, "submit", refusing)
    with pytest.raises(NotMade) as refused:
        await trial.answered(uuid4(), ASKED, str(user.tenant_id), "")
    assert refused.value.why is why


async def test_an_answer_that_takes_too_long_is_given_up(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(again, "_limit_s", lambda: 0.3)
    monkeypatch.setattr(again, "GRACE_S", -0.2)
    slow = script_text(text="word " * 200, delay_ms=200)
    with pytest.raises(NotMade) as refused:
        await trial.answered(uuid4(), slow, str(user.tenant_id), "")
    assert refused.value.why is WhyNot.TOO_LATE


async def test_another_model_does_not_answer_for_the_one_that_is_meant(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = again.made

    async def later(making: again.Making) -> Any:
        return await made(msgspec.structs.replace(making, revision="another"))

    monkeypatch.setattr(again, "made", later)
    with pytest.raises(NotMade) as refused:
        await trial.answered(uuid4(), ASKED, str(user.tenant_id), "")
    assert refused.value.why is WhyNot.OTHER_MODEL


async def test_half_an_answer_is_shown_as_one(user: User) -> None:
    half = script_text(text="Half of it", fail_after=1)
    assert not (await trial.answered(uuid4(), half, str(user.tenant_id), "")).is_complete
