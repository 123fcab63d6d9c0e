"""The gRPC door: the same flow, keys, quotas, cache and errors as the REST doors, many questions over one stream."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import httpx2
import pytest
from django.conf import settings
from django.core.checks import run_checks
from google.protobuf.descriptor_pool import DescriptorPool
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from chatsite.chat.turn import Caller
from chatsite.grpc_door import chat_pb2 as pb
from chatsite.grpc_door import talk
from chatsite.grpc_door.chat_pb2_grpc import ChatStub
from chatsite.grpc_door.server import SERVICE
from inference.testing.script import script_text
from tests.livesite import LiveSite
from tests.patience import PATIENCE_S

MODEL = "scripted"
DOCS = Path(__file__).resolve().parents[2] / "docs" / "api.md"


def signed(key: str) -> list[tuple[str, str]]:
    return [("authorization", f"Bearer {key}")]


def ask(name: str, text: str, **fields: Any) -> pb.ClientMessage:
    message = pb.Message(role="user", content=text)
    return pb.ClientMessage(request_id=name, ask=pb.Ask(model=MODEL, messages=[message], **fields))


async def said(stub: ChatStub, key: str, *messages: pb.ClientMessage) -> list[pb.ServerMessage]:
    """Everything that is said to a client that says all at once."""
    return [
        message async for message in stub.Converse(iter(messages), metadata=signed(key), timeout=PATIENCE_S)
    ]


def of(messages: list[pb.ServerMessage], name: str, index: int = 0) -> list[pb.ServerMessage]:
    return [message for message in messages if message.request_id == name and message.index == index]


def text_of(messages: list[pb.ServerMessage]) -> str:
    return "".join(message.delta.text for message in messages)


def kinds(messages: list[pb.ServerMessage]) -> list[str]:
    return [str(message.WhichOneof("event")) for message in messages]


async def test_questions_are_answered_side_by_side_each_to_its_end(stub: ChatStub, key: str) -> None:
    slow = script_text(text="slow answer of many words", delay_ms=60)
    messages = await said(stub, key, ask("slow", slow), ask("quick", "quick one"))
    assert text_of(of(messages, "slow")) == "slow answer of many words"
    assert text_of(of(messages, "quick")) == "You said: quick one (2 words)"
    order = [message.request_id for message in messages if message.WhichOneof("event") == "done"]
    assert order == ["quick", "slow"]
    for name in ("slow", "quick"):
        assert kinds(of(messages, name))[0] == "accepted"
        assert kinds(of(messages, name))[-1] == "done"
        assert of(messages, name)[-1].done.generated_tokens > 0


async def test_choices_are_told_apart_by_their_index(stub: ChatStub, key: str) -> None:
    messages = await said(stub, key, ask("both", "two of them", n=2, seed=7))
    assert {kinds(of(messages, "both", index))[-1] for index in (0, 1)} == {"done"}
    assert text_of(of(messages, "both", 1)) == "You said: two of them (3 words)"


async def test_the_cache_stands_in_front_and_is_steered_by_wishes(stub: ChatStub, key: str) -> None:
    text = "What does the gRPC door give?"
    first = await said(stub, key, ask("a", text, temperature=0))
    again = await said(stub, key, ask("a", text, temperature=0))
    fresh = await said(stub, key, ask("a", text, temperature=0, cache=pb.CacheWishes(no_cache=True)))
    unknown = await said(stub, key, ask("a", "never asked", cache=pb.CacheWishes(only_if_cached=True)))
    assert [messages[0].accepted.cache for messages in (first, again, fresh)] == [
        "miss",
        "hit-exact",
        "bypass",
    ]
    assert text_of(again) == text_of(first)
    assert (unknown[-1].failed.code, unknown[-1].failed.status) == ("not_cached", 504)


async def test_a_conversation_keeps_its_kv(stub: ChatStub, key: str) -> None:
    async def turn(*texts: str) -> pb.Done:
        roles = ["user", "assistant"] * len(texts)
        messages = [pb.Message(role=role, content=text) for role, text in zip(roles, texts, strict=False)]
        asked = pb.Ask(
            model=MODEL, messages=messages, prompt_cache_key="talk", cache=pb.CacheWishes(no_cache=True)
        )
        return (await said(stub, key, pb.ClientMessage(request_id="t", ask=asked)))[-1].done

    assert (await turn("Remember the number 7")).reused_tokens == 0
    answer = "You said: Remember the number 7 (4 words)"
    assert (await turn("Remember the number 7", answer, "And now?")).reused_tokens >= 40


async def test_stop_ends_one_answer_and_the_stream_goes_on(stub: ChatStub, key: str, site: LiveSite) -> None:
    call = stub.Converse(metadata=signed(key), timeout=PATIENCE_S)
    await call.write(ask("long", script_text(tokens=5000, delay_ms=20)))
    generation = ""
    async for message in call:
        generation = message.accepted.generation or generation
        if message.WhichOneof("event") == "delta":
            break
    await call.write(pb.ClientMessage(request_id="long", stop=pb.Stop()))
    await call.write(ask("next", "still here?"))
    await call.done_writing()
    rest = [message async for message in call]
    assert of(rest, "long")[-1].failed.code == "cancelled"
    assert text_of(of(rest, "next")) == "You said: still here? (2 words)"
    assert await state_of(site, generation) == "stopped"


async def test_a_client_that_goes_away_frees_the_device(stub: ChatStub, key: str, site: LiveSite) -> None:
    call = stub.Converse(metadata=signed(key), timeout=PATIENCE_S)
    await call.write(ask("long", script_text(tokens=5000, delay_ms=20)))
    generation = ""
    async for message in call:
        generation = message.accepted.generation or generation
        if message.WhichOneof("event") == "delta":
            break
    call.cancel()
    assert await state_of(site, generation) == "stopped"


async def test_a_client_that_reads_nothing_and_goes_away_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also while its answers wait for room to say something."""

    async def never(model: str) -> None:
        await asyncio.Event().wait()

    async def messages() -> AsyncIterator[pb.ClientMessage]:
        yield ask("one that is being answered", "hello")
        while True:
            yield pb.ClientMessage(ask=pb.Ask())

    monkeypatch.setattr(talk, "served_chat_model", never)
    talking = talk.Talk(Caller(1, "1"))
    events = talking.events(messages())
    await anext(events)
    while not talking._said.full():
        await asyncio.sleep(0)
    async with asyncio.timeout(PATIENCE_S):
        await events.aclose()


async def test_a_revoked_key_ends_its_open_streams(stub: ChatStub, site: LiveSite) -> None:
    key = site.key("gone", "chat")
    call = stub.Converse(metadata=signed(key), timeout=PATIENCE_S)
    await call.write(ask("long", script_text(tokens=5000, delay_ms=20)))
    with pytest.raises(grpc.aio.AioRpcError) as ended:
        async for message in call:
            if message.WhichOneof("event") == "delta":
                site.sql("UPDATE accounts_apikey SET revoked_at = now() WHERE prefix = %s", key[:13])
    assert ended.value.code() is grpc.StatusCode.UNAUTHENTICATED


@pytest.mark.parametrize(
    ("fields", "code", "status", "param"),
    [
        ({"temperature": 9.0}, "out_of_range", 400, "temperature"),
        ({"options": "[]"}, "invalid_value", 400, "options"),
        ({"options": "{"}, "invalid_request", 400, ""),
        ({"options": '{"n": 2}', "n": 2}, "invalid_value", 400, "n"),
        ({"options": '{"logprobs": true}'}, "unsupported_parameter", 400, "logprobs"),
        ({"options": '{"tools": 3}'}, "invalid_type", 400, "tools"),
    ],
)
async def test_a_bad_question_fails_alone(
    stub: ChatStub, key: str, fields: dict[str, Any], code: str, status: int, param: str
) -> None:
    messages = await said(stub, key, ask("bad", "x", **fields), ask("good", "fine"))
    (failed,) = [message.failed for message in of(messages, "bad")]
    assert (failed.code, failed.status, failed.param) == (code, status, param)
    assert text_of(of(messages, "good")) == "You said: fine (1 word)"


async def test_odd_messages_fail_alone(stub: ChatStub, key: str) -> None:
    unknown = pb.ClientMessage(
        request_id="m", ask=pb.Ask(model="other", messages=[pb.Message(role="user", content="x")])
    )
    nul = ask("nul", "a\x00b")
    messages = await said(
        stub, key, unknown, nul, pb.ClientMessage(request_id="e"), ask("", "no name"), ask("twin", "a"),
        ask("twin", "b"), pb.ClientMessage(request_id="nobody", stop=pb.Stop()),
    )  # fmt: skip
    codes = {message.request_id: message.failed.code for message in messages if message.HasField("failed")}
    assert codes == {
        "m": "model_not_found", "nul": "invalid_text", "e": "invalid_value",
        "": "missing_required_parameter", "twin": "invalid_value",
    }  # fmt: skip
    assert text_of(of(messages, "twin")) == "You said: a (1 word)"


async def test_quotas_hold_at_this_door_too(stub: ChatStub, site: LiveSite) -> None:
    key = site.key("poor", "chat")
    site.sql(
        "INSERT INTO accounts_quota (applies, user_id, window_s, max_requests) VALUES ('user', %s, 86400, 1)",
        site.user("poor"),
    )
    await said(stub, key, ask("one", "first"))
    failed = (await said(stub, key, ask("two", "second")))[-1].failed
    assert failed.status == 429
    assert failed.retry_after_s > 0


@pytest.mark.parametrize(
    ("key", "status", "code"),
    [
        ("", grpc.StatusCode.UNAUTHENTICATED, "missing_api_key"),
        ("rill_" + "x" * 43, grpc.StatusCode.UNAUTHENTICATED, "invalid_api_key"),
        ("embeddings", grpc.StatusCode.PERMISSION_DENIED, "missing_scope"),
    ],
)
async def test_only_a_good_key_with_the_scope_is_let_in(
    stub: ChatStub, site: LiveSite, key: str, status: grpc.StatusCode, code: str
) -> None:
    secret = site.key("narrow", "embeddings") if key == "embeddings" else key
    call = stub.Converse(
        metadata=signed(secret) if secret else (), timeout=60
    )  # a write would race with the end
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        [message async for message in call]
    assert refused.value.code() is status
    assert ("rill-code", code) in {(k, v) for k, v in refused.value.trailing_metadata()}


async def test_models_and_embeddings(stub: ChatStub, key: str, site: LiveSite) -> None:
    models = await stub.Models(pb.ModelsRequest(), metadata=signed(key))
    assert models.chat_model == MODEL and [*models.chat_models] == [MODEL]
    made = await stub.Embed(
        pb.EmbedRequest(model=models.embedding_model, input=["a", "b"]), metadata=signed(key)
    )
    answer = httpx2.post(
        f"{site.url}/v1/embeddings",
        headers={"Authorization": f"Bearer {key}"},
        json={"model": models.embedding_model, "input": ["a", "b"]},
    ).json()
    assert [list(vector.values) for vector in made.vectors] == [
        pytest.approx(one["embedding"]) for one in answer["data"]
    ]
    assert made.prompt_tokens == answer["usage"]["prompt_tokens"]


async def test_health_and_reflection_are_served(channel: grpc.aio.Channel, site: LiveSite) -> None:
    stub = health_pb2_grpc.HealthStub(channel)
    for name in ("", SERVICE):
        answer = await stub.Check(health_pb2.HealthCheckRequest(service=name))
        assert answer.status == health_pb2.HealthCheckResponse.SERVING
    with grpc.insecure_channel(site.environ["CHAT_GRPC_ADDRESS"]) as plain:
        found = ProtoReflectionDescriptorDatabase(plain)
        assert SERVICE in found.get_services()
        methods = DescriptorPool(found).FindServiceByName(SERVICE).methods_by_name
    assert set(methods) == {"Converse", "Models", "Embed"}


def test_a_door_to_the_outside_needs_tls(monkeypatch: pytest.MonkeyPatch) -> None:
    for address, tls, code in [
        ("127.0.0.1:1", "", None), ("[::1]:1", "", None), ("localhost:1", "", None), ("0.0.0.0:1", "cert.pem", None),
        ("0.0.0.0:1", "", "chatsite.E022"), ("example.org:1", "", "chatsite.E022"), ("nonsense", "", "chatsite.E021"),
    ]:  # fmt: skip
        changed = replace(settings.CONFIG, grpc_address=address, tls_cert=tls)
        monkeypatch.setattr(settings, "CONFIG", changed)
        found = [error.id for error in run_checks(tags=["serving"], include_deployment_checks=True)]
        assert [one for one in found if one in ("chatsite.E021", "chatsite.E022")] == (
            [code] if code else []
        ), address


def test_the_client_of_the_docs_runs(site: LiveSite, key: str, tmp_path: Path) -> None:
    section = DOCS.read_text(encoding="utf-8").partition("## gRPC")[2]
    code = re.search(r"```python\n(.*?)```", section, re.DOTALL)
    assert code is not None
    assert len(code[1].strip().splitlines()) <= 12
    file = tmp_path / "client.py"
    file.write_text(
        code[1].replace("127.0.0.1:8001", site.environ["CHAT_GRPC_ADDRESS"]).replace("MODEL", MODEL)
    )
    done = subprocess.run(
        [sys.executable, str(file)], env=site.environ | {"KEY": key, "PYTHONPATH": str(DOCS.parents[1])},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "You said:" in done.stdout


async def state_of(site: LiveSite, generation: str) -> str:
    """The state of a generation when it has ended."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            rows = await asyncio.to_thread(
                site.sql, "SELECT state FROM chat_generation WHERE id = %s", generation
            )
            if rows and rows[0][0] not in ("queued", "running"):
                return str(rows[0][0])
            await asyncio.sleep(0.05)
