"""Clients that vanish at any moment, and clients that send what is no message: nothing of them stays behind."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import threading
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest

from inference.core.messages import Admit, Embedded, EmbedTexts, FinishedOut, StepPack, TokenOut
from inference.errors import QueueFull
from inference.front import intake
from inference.front.prompts import PromptBuilder
from inference.front.serve import build_server
from inference.front.server import EngineService
from inference.proto import convert
from inference.proto import engine_pb2 as pb
from inference.proto.engine_pb2_grpc import EngineStub
from inference.types import GenerateRequest, Owner, Segment
from tests.inference.front.idle_core import READY, engine_over, told
from tests.patience import PATIENCE_S

ID = "5e1a9e0a-3c0e-4b0e-8a53-0f6f6a1c2b11"
REQUEST = GenerateRequest(ID, (Segment("user", "Hello"),), Owner("t", "u", "c"))


class Front:
    """A front in this process behind a socket, so that tests can look inside."""

    def __init__(self, folder: Path) -> None:
        self.engine = engine_over()
        self.service = EngineService(self.engine)
        self.server = build_server(self.engine, self.service)
        self.address = f"unix:{folder}/front.sock"
        self.server.add_insecure_port(self.address)
        self.channel = grpc.aio.insecure_channel(self.address)
        self.stub = EngineStub(self.channel)


@pytest.fixture
async def front() -> AsyncIterator[Front]:
    folder = Path(tempfile.mkdtemp(prefix="rill-"))
    front = Front(folder)
    await front.server.start()
    yield front
    await front.channel.close()
    await front.server.stop(None)
    shutil.rmtree(folder)


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():
            await asyncio.sleep(0.001)


def submit_message() -> pb.SubmitRequest:
    return convert.request_to_pb(REQUEST)


@pytest.fixture
def encoding(monkeypatch: pytest.MonkeyPatch) -> tuple[threading.Event, threading.Event]:
    """(has begun, may end): a prompt that is encoded in a thread for as long as a test wants."""
    monkeypatch.setattr(intake, "MAX_INLINE_CHARACTERS", 0)
    begun, may_end, build = threading.Event(), threading.Event(), PromptBuilder.build

    def slow_build(self: PromptBuilder, *args: Any, **options: Any) -> Any:
        begun.set()
        may_end.wait(5)
        return build(self, *args, **options)

    monkeypatch.setattr(PromptBuilder, "build", slow_build)
    return begun, may_end


async def test_a_submit_whose_client_vanishes_while_the_prompt_is_encoded_leaves_nothing(
    front: Front, encoding: tuple[threading.Event, threading.Event]
) -> None:
    begun, may_end = encoding
    call = front.stub.Submit(submit_message())
    waiting = asyncio.ensure_future(call)
    await until(begun.is_set)
    waiting.cancel()
    await until(lambda: not front.engine._intake._submitting)
    assert not front.engine._intake._encoding
    may_end.set()
    assert front.engine.archive.num_live == 0
    assert (await front.stub.Submit(submit_message())).prompt_tokens > 0
    assert len(told(front.engine, Admit)) == 1


async def test_a_burst_is_refused_while_prompts_are_still_encoded(
    encoding: tuple[threading.Event, threading.Event],
) -> None:
    """Kills a check that sees only what was encoded: the whole burst would wait for the threads that encode."""
    engine = engine_over(max_batch=2, max_queue=3)
    requests = [replace(REQUEST, generation_id=f"{number}") for number in range(50)]
    submits = [asyncio.create_task(engine.submit(request)) for request in requests]
    await until(lambda: sum(task.done() for task in submits) == 45)
    assert {type(task.exception()) for task in submits if task.done()} == {QueueFull}
    encoding[1].set()
    await asyncio.wait(submits)
    assert len(told(engine, Admit)) == 5
    assert not engine._intake._encoding


async def test_a_submit_whose_client_vanishes_after_it_was_accepted_goes_on_once(front: Front) -> None:
    waiting = asyncio.ensure_future(front.stub.Submit(submit_message()))
    await until(lambda: bool(told(front.engine, Admit)))
    waiting.cancel()
    assert (await front.stub.Submit(submit_message())).prompt_tokens > 0
    assert len(told(front.engine, Admit)) == 1
    front.engine.on_step(StepPack(finished=[FinishedOut(ID, "stop")]))
    assert front.engine.archive.num_live == 0


@pytest.mark.parametrize("num_read", [0, 1, 2])
async def test_a_session_whose_client_vanishes_follows_nothing_any_more(front: Front, num_read: int) -> None:
    await front.stub.Submit(submit_message())
    generation = front.engine.archive.find(ID)
    assert generation is not None

    async def commands() -> AsyncIterator[pb.SessionCommand]:
        yield pb.SessionCommand(attach=pb.Attach(generation_id=ID))
        await asyncio.Event().wait()

    call = front.stub.Session(commands())
    await until(lambda: bool(generation.followers))
    for number in range(num_read):
        front.engine.on_step(StepPack(tokens=[TokenOut(ID, 0x61 + number)]))
        assert (await call.read()).events[0].delta.text == "ab"[number]
    call.cancel()
    await until(lambda: not generation.followers and not front.service._sessions)
    assert generation.is_live


async def test_texts_whose_client_vanishes_count_until_the_core_is_done_with_them(front: Front) -> None:
    waiting = asyncio.ensure_future(front.stub.Embed(pb.EmbedRequest(texts=["a", "b"])))
    await until(lambda: bool(told(front.engine, EmbedTexts)))
    waiting.cancel()
    await until(lambda: not front.engine.lane._embedding)
    assert front.engine.lane.has_pending
    (texts,) = told(front.engine, EmbedTexts)
    front.engine.on_step(StepPack(embedded=[Embedded(texts.id, 1, b"\0" * 8)]))
    assert not front.engine.lane.has_pending


METHODS = [
    method.name for method in pb.DESCRIPTOR.services_by_name["Engine"].methods if method.name != "Session"
]


NO_UTF8 = b"\x0a\x04\xff\xfe\xfd\xfc"


@pytest.mark.parametrize(
    ("name", "garbage"),
    [(name, garbage) for name in METHODS for garbage in (b"\xff" * 40, b"\x0a\xff", b"\x12")]
    + [("Submit", NO_UTF8), ("Cancel", NO_UTF8), ("Embed", NO_UTF8)],
)
async def test_bytes_that_are_no_message_get_one_status_and_the_next_call_is_served(
    front: Front, name: str, garbage: bytes
) -> None:
    call = front.channel.unary_unary(f"/rill.engine.v1.Engine/{name}")
    with pytest.raises(grpc.aio.AioRpcError) as status:
        await call(garbage, timeout=PATIENCE_S)
    assert status.value.code() in (grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN)
    assert (await front.stub.Info(pb.InfoRequest(), timeout=PATIENCE_S)).max_context == READY.max_context
    assert front.engine.archive.num_live == 0


async def test_garbage_on_a_session_ends_that_session_only(front: Front) -> None:
    async def garbage() -> AsyncIterator[bytes]:
        yield b"\xff" * 40
        await asyncio.Event().wait()

    call = front.channel.stream_stream("/rill.engine.v1.Engine/Session")(garbage())
    with pytest.raises(grpc.aio.AioRpcError):
        assert await call.read() is grpc.aio.EOF
        raise grpc.aio.AioRpcError(await call.code(), grpc.aio.Metadata(), grpc.aio.Metadata())
    await until(lambda: not front.service._sessions)
    assert (await front.stub.Info(pb.InfoRequest(), timeout=PATIENCE_S)).max_context == READY.max_context


async def test_a_method_that_does_not_exist_is_not_supported(front: Front) -> None:
    call = front.channel.unary_unary("/rill.engine.v1.Engine/Explode")
    with pytest.raises(grpc.aio.AioRpcError) as status:
        await call(b"", timeout=PATIENCE_S)
    assert status.value.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_fields_of_a_later_version_are_no_error(front: Front) -> None:
    call = front.channel.unary_unary(
        "/rill.engine.v1.Engine/Submit", response_deserializer=pb.SubmitReply.FromString
    )
    reply = await call(submit_message().SerializeToString() + b"\xfa\x3e\x03abc", timeout=PATIENCE_S)
    assert reply.prompt_tokens > 0
