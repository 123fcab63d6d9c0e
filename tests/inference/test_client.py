"""The client alone: what it imports, what it translates, and what a slow follower costs."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import fields

import grpc
import pytest

from inference import errors
from inference.client import EngineClient
from inference.proto import convert
from inference.proto import engine_pb2 as pb
from inference.proto.status import from_status, to_status
from inference.session import MAX_QUEUED_EVENTS, Attachment, SharedSession
from inference.types import EngineInfo, EngineStats, GenerateRequest, Owner, Sampling, Segment
from tests.patience import PATIENCE_S

HEAVY = ("torch", "transformers", "tokenizers", "numpy", "jinja2", "django", "channels", "celery")


@pytest.mark.parametrize("module", ["inference.client", "inference.testing"])
def test_the_client_imports_nothing_heavy(module: str) -> None:
    code = f"import sys, {module}; print([name for name in {HEAVY!r} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "module", ["inference.testing.core", "inference.testing.front", "inference.__main__"]
)
def test_the_front_never_imports_torch_and_the_scripted_core_not_even_grpc(module: str) -> None:
    unwanted = ("torch", "transformers", *(("grpc", "asyncio") if module == "inference.testing.core" else ()))
    code = f"import sys, {module}; print([name for name in {unwanted!r} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


@pytest.mark.parametrize("cls", errors.BY_CODE.values())
def test_every_error_survives_the_wire(cls: type[errors.EngineError]) -> None:
    status, text, metadata = to_status(cls("what happened", retry_after_s=1.5))
    again = from_status(failed_call(status, text, metadata))
    assert type(again) is cls
    assert (again.message, again.retry_after_s) == ("what happened", 1.5)


@pytest.mark.parametrize(
    ("status", "cls"),
    [
        (grpc.StatusCode.UNAVAILABLE, errors.EngineUnavailable),
        (grpc.StatusCode.DEADLINE_EXCEEDED, errors.EngineUnavailable),
        (grpc.StatusCode.UNAUTHENTICATED, errors.Unauthenticated),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, errors.InvalidRequest),
        (grpc.StatusCode.INTERNAL, errors.EngineError),
    ],
)
def test_statuses_that_grpc_makes_itself_are_translated(
    status: grpc.StatusCode, cls: type[errors.EngineError]
) -> None:
    assert type(from_status(failed_call(status, "", ()))) is cls


def test_a_request_survives_the_wire() -> None:
    sampling = Sampling(temperature=0.0, top_k=0, seed=2**64 - 1, stop=("a", "b"), max_tokens=5)
    segments = (Segment("user", "你好"), Segment("assistant", "x", (1, 2**31), "fingerprint"))
    request = GenerateRequest("id", segments, Owner("t", "u", "c"), sampling, priority=-3, deadline_s=1.5)
    again = convert.request_from_pb(
        pb.SubmitRequest.FromString(convert.request_to_pb(request).SerializeToString())
    )
    assert again == request


def test_stats_and_info_have_every_field_of_the_contract() -> None:
    for cls, message in ((EngineStats, pb.StatsReply), (EngineInfo, pb.InfoReply)):
        assert {field.name for field in fields(cls)} == {field.name for field in message.DESCRIPTOR.fields}


@pytest.mark.parametrize(
    "ask",
    [
        lambda client: client.submit(request_of(Sampling(temperature=10**400))),
        lambda client: client.submit(request_of(Sampling(seed="7"))),
        lambda client: client.warm([Segment("user", "\ud800")], Owner("t", "u")),
        lambda client: client.forget(Owner("t", "\ud800")),
        lambda client: client.count_tokens([Segment("user", "\ud800")]),
        lambda client: client.embed(["\ud800"]),
        lambda client: client.verify([("a", 5)]),
        lambda client: client.cancel("\ud800"),
    ],
)
async def test_what_no_message_can_hold_is_an_invalid_request(
    ask: Callable[[EngineClient], Awaitable[object]], tmp_path: object
) -> None:
    client = EngineClient(f"unix:{tmp_path}/nobody.sock")
    with pytest.raises(errors.InvalidRequest, match="cannot be sent"):
        await ask(client)
    await client.close()


def request_of(sampling: Sampling) -> GenerateRequest:
    return GenerateRequest("id", (Segment("user", "Hello"),), Owner("t", "u"), sampling)


async def test_calls_without_an_engine_fail_as_unavailable(tmp_path: object) -> None:
    client = EngineClient(f"unix:{tmp_path}/nobody.sock", patience_s=0)
    with pytest.raises(errors.EngineUnavailable):
        await client.stats()
    with pytest.raises(errors.EngineUnavailable):
        await anext(client.attach("8b9f2c4e-0000-4000-8000-000000000000"))
    assert await client.health() is False
    await client.close()


async def test_a_closed_client_ends_its_followers(tmp_path: object) -> None:
    client = EngineClient(f"unix:{tmp_path}/nobody.sock")
    attachment = client._session().follow("id", 0)
    await client.close()
    with pytest.raises(errors.EngineUnavailable):
        await attachment.next()


async def test_a_slow_follower_keeps_a_bound_and_loses_nothing() -> None:
    attachment, total = Attachment("id", 0), 3 * MAX_QUEUED_EVENTS
    log = [pb.Event(generation_id="id", seq=seq, delta=pb.Delta(text="x")) for seq in range(1, total + 1)]
    seen: list[int] = []
    num_attached = 0
    while len(seen) < total:
        num_attached += 1
        for event in log[attachment.consumed_seq :]:
            attachment.offer(event)
            assert len(attachment._events) <= MAX_QUEUED_EVENTS
        while len(seen) < total and (event := await attachment.next()) is not None:
            seen.append(event.seq)
        attachment.resume()
    assert seen == list(range(1, total + 1))
    assert num_attached == 3


async def test_events_seen_before_are_dropped_and_progress_gives_way() -> None:
    attachment = Attachment("id", 2)
    for seq in (1, 2, 3, 3, 5, 4):
        attachment.offer(pb.Event(seq=seq, delta=pb.Delta(text="x")))
    assert [(await attachment.next()).seq for _ in range(2)] == [3, 4]  # type: ignore[union-attr]
    for _ in range(MAX_QUEUED_EVENTS):
        attachment.offer(pb.Event(queued=pb.Queued(position=1)))
    attachment.offer(pb.Event(seq=5, delta=pb.Delta(text="x")))
    assert not attachment.is_overflowed
    assert attachment.received_seq == 5


class EndedCall:
    """A stream that the front ended: cancelling it does nothing any more, as with gRPC's own."""

    def __aiter__(self) -> EndedCall:
        return self

    async def __anext__(self) -> pb.EventPack:
        raise StopAsyncIteration

    def cancel(self) -> bool:
        return False


async def test_a_stream_that_ended_by_itself_leaves_no_reader_of_its_requests() -> None:
    readers: list[asyncio.Task[list[pb.SessionCommand]]] = []

    async def read(requests: AsyncIterator[pb.SessionCommand]) -> list[pb.SessionCommand]:
        return [command async for command in requests]

    def open_stream(requests: AsyncIterator[pb.SessionCommand], deadline_s: float) -> EndedCall:
        readers.append(asyncio.create_task(read(requests)))
        return EndedCall()

    session = SharedSession(open_stream, patience_s=0)  # type: ignore[arg-type]
    attachment = session.follow("id", 7)
    with pytest.raises(errors.EngineUnavailable):
        await attachment.next()
    session.leave(attachment)
    async with asyncio.timeout(PATIENCE_S):
        heard = await asyncio.gather(*readers)
    assert [command.attach.after for command in heard[0]] == [7]
    await session.close()


def failed_call(
    status: grpc.StatusCode, text: str, metadata: tuple[tuple[str, str], ...]
) -> grpc.aio.AioRpcError:
    return grpc.aio.AioRpcError(status, grpc.aio.Metadata(), grpc.aio.Metadata(*metadata), details=text)
