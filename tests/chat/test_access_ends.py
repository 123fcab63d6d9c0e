"""What ends somebody's access ends their open sockets and streams, too, at the next look (S07, S13)."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from django.db import OperationalError
from django.test import AsyncClient
from django.utils import timezone

from chatsite.accounts import grants, keys
from chatsite.accounts.grants import Grant, Watch, watch
from chatsite.accounts.models import ApiKey, User
from chatsite.chat.limits import CLOSE_SIGNED_OUT
from chatsite.chat.models import Generation
from chatsite.chat.running import running
from chatsite.db import run_in_db
from chatsite.errors import AccessEnded
from inference.testing import script_text
from tests.chat.conftest import open_socket
from tests.patience import PATIENCE_S

ENDLESS = script_text(tokens=5000, delay_ms=20)
PAST = timezone.now() - timedelta(seconds=1)


def people(**columns: Any) -> Callable[[], object]:
    return lambda: User.objects.filter(username="ada").update(**columns)


def tokens(**columns: Any) -> Callable[[], object]:
    return lambda: ApiKey.objects.update(**columns)


ENDS_OF_SESSIONS: dict[str, Callable[[], object]] = {
    "signed out": lambda: Session.objects.all().delete(),
    "session over": lambda: Session.objects.update(expire_date=PAST),
    "switched off": people(is_active=False),
    "another password": people(password="another"),
    "staff taken away": people(is_staff=False),
    "superuser taken away": people(is_superuser=False),
    "erased": lambda: User.objects.filter(username="ada").delete(),
}
ENDS_OF_KEYS: dict[str, Callable[[], object]] = {
    "revoked": tokens(revoked_at=timezone.now()),
    "expired": tokens(expires_at=PAST),
    "its user switched off": people(is_active=False),
    "gone": lambda: ApiKey.objects.all().delete(),
}


@pytest.mark.parametrize("end", ENDS_OF_SESSIONS)
async def test_one_look_closes_the_sockets_of_a_session_that_ended(
    engine: Any, user: User, other_user: User, end: str
) -> None:
    await run_in_db(people(is_staff=True, is_superuser=True))
    await run_in_db(user.refresh_from_db)
    socket, neighbour = await open_socket(user), None
    if end not in ("signed out", "session over"):  # these end everybody's
        neighbour = await open_socket(other_user)
    accepted = await socket.send(ENDLESS)
    await socket.until("delta")
    await watch.recheck()
    await socket.until("delta")  # nothing has ended yet
    await run_in_db(ENDS_OF_SESSIONS[end])
    await watch.recheck()
    assert await socket.closed() == CLOSE_SIGNED_OUT
    assert await socket.channel.receive_nothing(timeout=0.2), "something came after the end"
    if neighbour is not None:
        await neighbour.say("ping")
        assert (await neighbour.hear())["type"] == "pong"
        await neighbour.close()
    await socket.close()
    await running().abandon(accepted["generation"])


@pytest.mark.parametrize("end", ENDS_OF_KEYS)
async def test_one_look_ends_the_streams_and_requests_of_a_key_that_ended(
    engine: Any, user: User, end: str
) -> None:
    _, secret = await run_in_db(keys.create_key, user, "test", ["chat"])
    client, bearer = AsyncClient(), {"Authorization": f"Bearer {secret}"}
    body = {"model": "scripted", "messages": [{"role": "user", "content": ENDLESS}]}
    url, kind = "/v1/chat/completions", "application/json"
    whole = asyncio.create_task(client.post(url, body, content_type=kind, headers=bearer))
    streamed = await client.post(url, body | {"stream": True}, content_type=kind, headers=bearer)
    lines = aiter(streamed.streaming_content)
    for _ in range(3):
        await anext(lines)
    await watch.recheck()
    await anext(lines)  # nothing has ended yet
    await run_in_db(ENDS_OF_KEYS[end])
    await watch.recheck()
    rest = b"".join([line async for line in lines]).decode()
    last = json.loads(rest.rstrip().rpartition("data: ")[2])
    assert last["error"]["code"] == "access_ended" and "[DONE]" not in rest
    answer = await whole
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "access_ended")
    live = Generation.objects.filter(state__in=("queued", "running"))
    assert not await run_in_db(live.exists), "the device works on for somebody who was sent away"


async def test_the_look_comes_round_by_the_clock_and_outlives_a_database_that_is_away(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Two looks fit into the two seconds that are promised; a failed one is not the last."""
    assert 2 * grants.RECHECK_EVERY_S <= 2
    slept: list[float] = []
    real_sleep = asyncio.sleep

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        await real_sleep(0)

    answers: list[Any] = [OperationalError("away"), ValueError("odd"), set()]

    async def ask(*_: Any) -> Any:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(grants.asyncio, "sleep", sleep)
    monkeypatch.setattr(grants, "run_in_db", ask)
    own, ended = Watch(), asyncio.Event()
    own.add(Grant(1, session="x"), ended.set)
    chore = asyncio.create_task(own.recheck_forever())
    await asyncio.wait_for(ended.wait(), PATIENCE_S)
    chore.cancel()
    assert len(own) == 0 and slept[:3] == [grants.RECHECK_EVERY_S] * 3
    assert "can't be checked" in caplog.text


async def test_a_block_that_is_cancelled_by_somebody_else_is_not_taken_for_ended() -> None:
    own = Watch()

    async def work() -> None:
        async with own.held(Grant(1, session="x")):
            await asyncio.sleep(60)

    cancelled, ended = asyncio.create_task(work()), asyncio.create_task(work())
    await asyncio.sleep(0)
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    next(iter(own._watched.values()))[1]()
    with pytest.raises(AccessEnded):
        await ended
    assert len(own) == 0


# What a look leaves out if a line of it is broken: each of these must make a test above fail.
MUTANTS = {
    "usable(ApiKey.objects.filter(pk__in=by_key))": "ApiKey.objects.filter(pk__in=by_key)",
    "lasting, revoked_at__isnull=True": "lasting",
    "filter(lasting, revoked": "filter(revoked",
    "expire_date__gt=now": "session_key__isnull=False",
    "grant.footing in (None, footings[grant.user_id])": "True",
    "pk__in=users, is_active=True": "pk__in=users",
}


def test_each_condition_counts(transactional_db: None) -> None:
    """`still_held` with one of its conditions taken out lets somebody stay whom it must send away."""
    parts = (grants.still_held, grants._footings, keys.usable)
    source = "\n".join(inspect.getsource(part) for part in parts).replace("keys.usable", "usable")
    assert all(_ends(grants.still_held))
    for line, changed in MUTANTS.items():
        assert source.count(line) == 1
        mutant: dict[str, Any] = vars(keys) | vars(grants)
        exec(compile(source.replace(line, changed), "mutant", "exec"), mutant)
        assert not all(_ends(mutant["still_held"])), line


def _ends(still_held: Callable[[set[Grant]], set[Grant]]) -> list[bool]:
    """For every way in which access ends, whether `still_held` sees it."""
    from tests.chat.conftest import cookie_of, make_user

    seen = []
    for end in (*ENDS_OF_SESSIONS.values(), *ENDS_OF_KEYS.values()):
        User.objects.all().delete()
        Session.objects.all().delete()
        user = make_user("ada")
        people(is_staff=True, is_superuser=True)()
        user.refresh_from_db()
        key, _ = keys.create_key(user, "test", ["chat"])
        session = cookie_of(user).partition("=")[2]
        is_key = end in ENDS_OF_KEYS.values()
        grant = Grant(user.pk, api_key=key.pk) if is_key else Grant.of_session(user, session)
        assert still_held({grant}) == {grant}
        end()
        seen.append(still_held({grant}) == set())
    return seen
