"""An upstream that is full, broken, slow or away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest

from inference.core.messages import EmbedTexts
from inference.gateway import completion, start
from inference.testing.http import HttpAnswer
from inference.testing.upstream import Behaviour, FakeUpstream, refusal
from tests.inference.gateway.driver import admit_of, both, fake_upstream, gateway, scripted
from tests.patience import PATIENCE_S


@pytest.mark.parametrize("status", [429, 503])
async def test_a_full_upstream_is_asked_again_after_the_time_it_names(status: int) -> None:
    async with both() as (front, upstream):
        upstream.behaviour.fail_with = [refusal(status, "full", **{"Retry-After": "0"})] * 3
        end = await front.answer(admit_of("a"))
        assert (end.reason, len(upstream.received)) == ("stop", 4)


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ({"fail_after": 3}, "the upstream failed: scripted failure"),
        ({"die_after": 3}, "the connection to the upstream was lost in mid-answer"),
    ],
)
async def test_an_answer_that_breaks_off_fails_with_what_it_has_and_others_go_on(
    fault: dict[str, int], error: str
) -> None:
    async with both() as (front, upstream):
        await front.send(scripted("good", tokens=40, delay_ms=2))
        await front.send(scripted("bad", text="abcdefghijkl", **fault))
        bad, good = await front.end("bad"), await front.end("good")
        assert (bad.reason, front.text("bad")) == ("failed", "abcdefghi")
        assert bad.error.startswith(error)
        assert (good.reason, good.generated_tokens) == ("stop", 41)
        assert len(upstream.received) == 2  # what has begun is never asked again


@pytest.mark.parametrize(
    "answer",
    [
        refusal(500, "out of memory"),
        refusal(404, "no such model"),
        HttpAnswer(body=b"<html>not a stream</html>"),
        HttpAnswer(body=b'data: {"choices": [{"token_ids": [-1], "finish_reason": "stop"}]}\n\n'),
        HttpAnswer(body=b'data: {"choices": [{"token_ids": [99999999999], "finish_reason": "stop"}]}\n\n'),
        HttpAnswer(body=b"data: {nonsense\n\n"),
        HttpAnswer(body=b'data: {"choices": [{"text": "no ids", "finish_reason": "stop"}]}\n\n'),
        HttpAnswer(
            body=b'data: {"choices": [{"token_ids": [], "finish_reason": "abort"}]}\n\ndata: [DONE]\n\n'
        ),
        HttpAnswer(body=b'data: {"object": "error", "message": "old form", "code": 500}\n\n'),
        HttpAnswer(body=b'data: {"error": ' + b"[" * 100_000),
        HttpAnswer(500, b"[" * 60_000),
    ],
    ids=[
        "500",
        "404",
        "html",
        "negative id",
        "huge id",
        "nonsense",
        "no ids",
        "abort",
        "old error",
        "deep",
        "deep error",
    ],
)
async def test_nonsense_fails_one_answer(answer: HttpAnswer) -> None:
    async with both() as (front, upstream):
        upstream.behaviour.fail_with = [answer]
        bad = await front.answer(admit_of("bad"))
        assert bad.reason == "failed"
        assert "upstream" in bad.error or upstream.url in bad.error
        assert "generation_failed" not in bad.error  # the front's own word for it, which it adds itself
        assert (await front.answer(admit_of("good"))).reason == "stop"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (refusal(401, "invalid key"), "does not take ENGINE_UPSTREAM_KEY: invalid key"),
        (refusal(404, "not found"), "/v1/completions answered with status 404: not found"),
        (
            HttpAnswer(307, b"", {"Location": "https://me:secret@host/v1/completions?key=secret"}),
            "status 307: it moves to https://host/v1/completions, which",
        ),
        (HttpAnswer(307, b"", {"Location": "http://host:port"}), "status 307: it moves to somewhere else"),
        (HttpAnswer(500), "status 500: it gives no reason"),
        (
            HttpAnswer(200, b'{"choices": []}', {"Content-Type": "application/json"}),
            "answered with application/json instead of a stream of events",
        ),
    ],
    ids=["key", "path", "redirect", "broken redirect", "no reason", "no stream"],
)
async def test_a_wrong_setting_is_named(answer: HttpAnswer, said: str) -> None:
    async with both() as (front, upstream):
        upstream.behaviour.fail_with = [answer]
        error = (await front.answer(admit_of("a"))).error
        assert said in error
        assert "secret" not in error


async def test_an_error_that_never_ends_is_cut() -> None:
    async def endless() -> AsyncGenerator[str]:
        while True:
            yield "x" * 10_000

    async with both() as (front, upstream):
        upstream.behaviour.fail_with = [HttpAnswer(500, events=endless())]
        assert "status 500: data: xxx" in (await front.answer(admit_of("a"))).error


@pytest.mark.parametrize("way", ["cut", "left open"])
async def test_an_answer_that_is_complete_stays_so_however_its_stream_ends(
    monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    async def complete() -> AsyncGenerator[str]:
        yield '{"choices": [{"token_ids": [97], "finish_reason": "stop"}]}'
        if way == "cut":
            raise ConnectionResetError
        await asyncio.Event().wait()

    monkeypatch.setattr(completion, "LAST_WORD_S", 0.05)
    async with both() as (front, upstream):
        upstream.behaviour.fail_with = [HttpAnswer(events=complete())]
        end = await front.answer(admit_of("a"))
        assert (end.reason, end.error, front.text("a")) == ("stop", "", "a")


async def test_an_upstream_that_never_answers_a_probe_is_asked_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing() -> AsyncGenerator[str]:
        await asyncio.Event().wait()
        yield ""

    monkeypatch.setattr(start, "PROBE_TIMEOUT_S", 0.1)
    behaviour = Behaviour(fail_with=[HttpAnswer(events=nothing())])
    async with fake_upstream(behaviour) as upstream, gateway(upstream.url) as front:
        await front.until(lambda: front.ready)
        assert any("no token of the upstream within" in line for line in front.loading)


async def test_a_stream_that_ends_without_a_finish_reason_was_cut() -> None:
    async with both() as (front, upstream):
        upstream.behaviour.fail_with = [
            HttpAnswer(body=b'data: {"choices": [{"token_ids": [97]}]}\n\ndata: [DONE]\n\n')
        ]
        end = await front.answer(admit_of("a"))
        assert (end.reason, front.text("a")) == ("failed", "a")
        assert "lost in mid-answer" in end.error


async def test_an_upstream_that_is_down_at_start_is_waited_for_and_the_reason_is_told() -> None:
    async with fake_upstream() as first:
        port = int(first.url.rpartition(":")[2])
    async with gateway(f"http://name:password@127.0.0.1:{port}") as front:
        await front.until(lambda: any("cannot be reached" in line for line in front.loading))
        assert front.ready is None
        assert "password" not in "".join(front.loading)
        upstream = FakeUpstream()
        await upstream.start(port)
        await front.until(lambda: front.ready)
        assert (await front.answer(admit_of("a"))).reason == "stop"
        await upstream.stop()


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        (Behaviour(key="other"), "invalid key"),
        (Behaviour(models=()), "serves no model"),
        (Behaviour(refused_fields=frozenset({"model"})), "refused"),
    ],
    ids=["wrong key", "no model", "refuses all"],
)
async def test_an_upstream_that_cannot_be_used_is_not_ready_for_a_reason(
    behaviour: Behaviour, reason: str
) -> None:
    async with fake_upstream(behaviour) as upstream, gateway(upstream.url) as front:
        await front.until(lambda: any(reason in line for line in front.loading))
        assert front.ready is None


async def test_an_upstream_that_goes_and_comes_back_is_used_again() -> None:
    async with both() as (front, upstream):
        port = int(upstream.url.rpartition(":")[2])
        await front.send(scripted("cut", tokens=1000, delay_ms=5))
        await front.until(lambda: front.tokens("cut"))
        await upstream.stop()
        assert (await front.end("cut")).reason == "failed"
        await front.send(admit_of("patient"))  # while it is away: nothing was said yet, so it is tried again
        await upstream.start(port)
        assert (await front.end("patient")).reason == "stop"


async def test_a_silent_upstream_does_not_silence_the_core() -> None:
    """The front restarts a core without steps; this one is well, its upstream is not."""
    async with both(step_timeout_s=0.2) as (front, _upstream):
        await front.send(scripted("a", hang_after=0), EmbedTexts("e", [[*b"text"]]))
        await front.until(lambda: any(pack.embedded for pack in front.packs))
        num_packs = len(front.packs)
        await front.until(lambda: len(front.packs) >= num_packs + 4)
        assert not any(pack.tokens for pack in front.packs)


async def test_a_closed_pipe_ends_the_core_and_its_requests() -> None:
    async with fake_upstream() as upstream:
        async with gateway(upstream.url) as front:
            await front.send(scripted("a", hang_after=1, tokens=5))
            await front.until(lambda: front.tokens("a"))
        async with asyncio.timeout(PATIENCE_S):
            while upstream.running:
                await asyncio.sleep(0)
        assert upstream.num_hung_up == 1
