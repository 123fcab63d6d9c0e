from __future__ import annotations

import asyncio

import pytest

from inference.core.messages import FinishedOut, TokenOut
from inference.front import archive as archives
from inference.front import sessions
from inference.front.archive import Archive
from inference.front.generation import Generation, GenerationLimits
from inference.front.sessions import MAX_PACK_BYTES, ClientSession
from inference.proto import engine_pb2 as pb
from inference.testing.tokenizer import ByteTokenizer
from tests.patience import PATIENCE_S


def now() -> float:
    return 0.0


def make(archive: Archive, name: str) -> Generation:
    one = Generation(name, 1, GenerationLimits(60, 10**9), tokenizer=ByteTokenizer(), clock=now)
    archive.add(one)
    return one


def say(one: Generation, text: str) -> None:
    for byte in text.encode():
        one.take(TokenOut(one.id, byte))
    one.publish()


def attach(name: str, after: int = 0) -> pb.SessionCommand:
    return pb.SessionCommand(attach=pb.Attach(generation_id=name, after=after))


async def next_pack(session: ClientSession) -> pb.EventPack:
    async with asyncio.timeout(PATIENCE_S):
        pack = await session.next_pack()
    assert pack is not None
    return pack


async def test_all_news_of_one_step_travel_in_one_pack() -> None:
    archive = Archive(ttl_s=60, clock=now)
    session = ClientSession(archive.find)
    generations = [make(archive, name) for name in "abc"]
    for one in generations:
        session.obey(attach(one.id))
    for one in generations:
        say(one, "hi")
    events = (await next_pack(session)).events
    assert [(event.generation_id, event.seq) for event in events] == [("a", 1), ("b", 1), ("c", 1)]


async def test_news_that_come_one_by_one_share_a_pack() -> None:
    archive = Archive(ttl_s=60, clock=now)
    session = ClientSession(archive.find)
    first, second, third = (make(archive, name) for name in "abc")
    for one in (first, second, third):
        session.obey(attach(one.id))
    say(first, "x")
    assert [event.generation_id for event in (await next_pack(session)).events] == ["a"]
    say(second, "x")
    coming = asyncio.create_task(next_pack(session))
    await asyncio.sleep(0)
    say(third, "x")
    assert [event.generation_id for event in (await coming).events] == ["b", "c"]


async def test_what_is_left_of_a_long_log_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "PACK_EVERY_S", 3600.0)
    archive = Archive(ttl_s=60, clock=now)
    session = ClientSession(archive.find)
    one = make(archive, "a")
    session.obey(attach("a"))
    for _ in range(600):
        one.log.append_delta(pb.Delta(text="x" * 1000))
    num_events = 0
    while num_events < 600:
        num_events += len((await next_pack(session)).events)


async def test_a_slow_reader_gets_everything_in_packs_of_bounded_size() -> None:
    archive = Archive(ttl_s=60, clock=now)
    session = ClientSession(archive.find)
    one = make(archive, "a")
    session.obey(attach("a"))
    for _ in range(600):
        one.log.append_delta(pb.Delta(text="x" * 1000))
    one.finish(FinishedOut("a", "stop"))
    seqs: list[int] = []
    while len(seqs) < 601:
        pack = await next_pack(session)
        assert pack.ByteSize() < MAX_PACK_BYTES + 5000
        seqs += [event.seq for event in pack.events]
    assert seqs == list(range(1, 602))


async def test_attaching_again_never_skips_what_was_not_sent() -> None:
    archive = Archive(ttl_s=60, clock=now)
    session = ClientSession(archive.find)
    one = make(archive, "a")
    say(one, "1")
    say(one, "2")
    say(one, "3")
    session.obey(attach("a", after=1))
    session.obey(attach("a", after=2))
    assert [event.seq for event in (await next_pack(session)).events] == [2, 3]


async def test_only_the_latest_progress_is_sent_and_each_once() -> None:
    archive = Archive(ttl_s=60, clock=now)
    session = ClientSession(archive.find)
    one = make(archive, "a")
    session.obey(attach("a"))
    for position in (5, 4, 3):
        one.show_queued(position)
    assert [event.queued.position for event in (await next_pack(session)).events] == [3]
    session.obey(attach("a"))
    say(one, "x")
    assert [event.seq for event in (await next_pack(session)).events] == [1]


async def test_an_unknown_generation_is_refused_by_an_event() -> None:
    session = ClientSession(Archive(ttl_s=60, clock=now).find)
    session.obey(attach("nobody"))
    (event,) = (await next_pack(session)).events
    assert (event.generation_id, event.attach_failed.code) == ("nobody", "generation_unknown")


async def test_a_reader_that_outlived_the_log_hears_that_it_is_gone() -> None:
    archive = Archive(ttl_s=-1, clock=now)
    session = ClientSession(archive.find)
    one = make(archive, "a")
    session.obey(attach("a"))
    say(one, "x")
    one.finish(FinishedOut("a", "stop"))
    archive.settle(one)
    archive.sweep()
    (event,) = (await next_pack(session)).events
    assert (event.generation_id, event.attach_failed.code) == ("a", "generation_unknown")
    session.notice("a")
    session.end()
    assert await session.next_pack() is None


async def test_who_asks_for_events_behind_the_last_one_does_not_wait_for_ever() -> None:
    archive = Archive(ttl_s=60, clock=now)
    session = ClientSession(archive.find)
    one = make(archive, "a")
    say(one, "x")
    one.finish(FinishedOut("a", "stop"))
    session.obey(attach("a", after=one.log.last_seq))
    (event,) = (await next_pack(session)).events
    assert event.attach_failed.code == "generation_unknown"
    assert one.followers == set()
    session.obey(attach("a", after=0))
    session.obey(attach("a", after=one.log.last_seq))
    assert [event.seq for event in (await next_pack(session)).events] == [1, 2]


def test_a_closed_session_follows_nothing() -> None:
    archive = Archive(ttl_s=60, clock=now)
    session = ClientSession(archive.find)
    one = make(archive, "a")
    session.obey(attach("a"))
    assert one.followers == {session}
    session.close()
    assert one.followers == set()


def test_ended_logs_go_by_age() -> None:
    time = [0.0]
    archive = Archive(ttl_s=10, clock=lambda: time[0])
    ended = [
        Generation(name, 1, GenerationLimits(60, 10**9), tokenizer=ByteTokenizer(), clock=lambda: time[0])
        for name in "ab"
    ]
    for one in ended:
        archive.add(one)
        one.finish(FinishedOut(one.id, "stop"))
        archive.settle(one)
        time[0] += 6
    archive.sweep()
    assert archive.find("a") is None
    assert archive.find("b") is ended[1]
    assert len(archive) == 1


async def test_an_ending_session_delivers_what_is_logged_first() -> None:
    archive = Archive(ttl_s=60, clock=now)
    session = ClientSession(archive.find)
    one = make(archive, "a")
    session.obey(attach("a"))
    say(one, "hi")
    session.end()
    assert [event.seq for event in (await next_pack(session)).events] == [1]
    assert await session.next_pack() is None


def archive_of(*names: str) -> tuple[Archive, list[Generation]]:
    archive = Archive(ttl_s=60, clock=now)
    return archive, [make(archive, name) for name in names]


@pytest.mark.parametrize(
    "command",
    [
        pb.SessionCommand(),
        pb.SessionCommand.FromString(b"\xfa\x01\x03abc"),  # field 31, which this side does not know
    ],
    ids=["empty", "of a later version"],
)
async def test_a_command_that_is_none_gets_one_refusal_and_the_stream_goes_on(
    command: pb.SessionCommand,
) -> None:
    archive, (one,) = archive_of("a")
    session = ClientSession(archive.find)
    session.obey(command)
    session.obey(attach("a"))
    say(one, "x")
    refusal, event = (await next_pack(session)).events
    assert (refusal.generation_id, refusal.attach_failed.code) == ("", "invalid_request")
    assert (event.generation_id, event.seq) == ("a", 1)


async def test_who_waits_for_events_that_never_come_is_told_when_the_answer_ends() -> None:
    archive, (one,) = archive_of("a")
    session = ClientSession(archive.find)
    session.obey(attach("a", after=2**64 - 1))
    say(one, "x")
    one.finish(FinishedOut("a", "stop"))
    (event,) = (await next_pack(session)).events
    assert event.attach_failed.code == "generation_unknown"
    assert one.followers == set()


async def test_a_flood_of_nonsense_ends_its_own_stream_and_is_not_kept_without_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sessions, "MAX_UNREAD_REFUSALS", 5)
    session = ClientSession(Archive(ttl_s=60, clock=now).find)
    for number in range(100):
        session.obey(attach(f"nobody-{number}"))
    assert len((await next_pack(session)).events) == 5
    assert await session.next_pack() is None


async def test_a_client_follows_a_bounded_number_and_may_attach_again_to_what_it_follows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sessions, "MAX_ATTACHED", 2)
    archive, (one, two, three) = archive_of("a", "b", "c")
    session = ClientSession(archive.find)
    for name in ("a", "b", "c", "a"):
        session.obey(attach(name))
    for each in (one, two, three):
        say(each, "x")
    codes = [(event.generation_id, event.attach_failed.code) for event in (await next_pack(session)).events]
    assert codes == [("c", "queue_full"), ("a", ""), ("b", "")]


def test_ended_logs_go_by_number_and_by_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    def ended(archive: Archive, name: str) -> Generation:
        one = make(archive, name)
        say(one, "x" * 100)
        one.finish(FinishedOut(name, "stop"))
        archive.settle(one)
        return one

    archive = Archive(ttl_s=60, clock=now)
    monkeypatch.setattr(archives, "MAX_ENDED", 3)
    for name in "abcde":
        ended(archive, name)
    assert [name for name in "abcde" if archive.find(name)] == ["c", "d", "e"]
    monkeypatch.setattr(archives, "MAX_ENDED_BYTES", 2 * archive.find("e").log.num_bytes)  # type: ignore[union-attr]
    last = ended(archive, "f")
    assert [name for name in "abcdef" if archive.find(name)] == ["e", "f"]
    archive.settle(last)  # twice is harmless
    assert len(archive) == 2
