"""What callers see when the core or the front goes wrong."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from inference.client import EngineClient
from inference.errors import EngineUnavailable, GenerationUnknown, ModelLoading
from inference.testing import EngineProcess, script_text, scripted_engine, scripted_process
from inference.types import Delta, FinishReason, Queued
from tests.inference.contract.conftest import ask
from tests.inference.contract.test_contract import collect, ending, first_delta, text_of
from tests.patience import PATIENCE_S

QUICK = ("--probe-interval-s", "0.1", "--probe-timeout-s", "0.4", "--step-timeout-s", "1")


@pytest.fixture
async def engine() -> AsyncIterator[EngineProcess]:
    async with scripted_engine(*QUICK) as engine:
        yield engine


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ({"fail_after": 4}, "generation_failed"),
        ({"die_after": 4}, "engine_restarted"),
        ({"garbage_after": 4}, "engine_restarted"),
        ({"hang_after": 4}, "engine_restarted"),
    ],
)
async def test_every_fault_ends_the_answer_once_and_the_next_one_works(
    engine: EngineProcess, fault: dict[str, int], code: str
) -> None:
    client = engine.client()
    events = await collect(
        client.generate(ask(script_text(text="abcdefghijklmnopqrstuvwxyz", delay_ms=2, **fault)))
    )
    assert text_of(events) == "abcdefghijkl"
    assert ending(events).finish_reason is FinishReason.FAILED
    assert ending(events).error_code == code
    await engine.wait_until(is_ready=True)
    assert ending(await collect(client.generate(ask("again")))).finish_reason is FinishReason.STOP
    await client.close()


async def test_a_failure_is_alone(engine: EngineProcess) -> None:
    client = engine.client()
    good, bad = await asyncio.gather(
        collect(client.generate(ask(script_text(tokens=30, delay_ms=5)))),
        collect(client.generate(ask(script_text(tokens=30, delay_ms=5, fail_after=3)))),
    )
    assert ending(good).finish_reason is FinishReason.STOP
    assert ending(bad).finish_reason is FinishReason.FAILED
    await client.close()


async def test_a_frozen_core_is_not_ready_and_a_thawed_one_is(run_folder: Path) -> None:
    engine = scripted_process(run_folder / "frozen", "--probe-interval-s", "0.1", "--probe-timeout-s", "0.4")
    await engine.start()
    client = engine.client()
    engine.freeze_core()
    await engine.wait_until(is_ready=False)
    assert "no token" in (await client.stats()).reason
    engine.thaw_core()
    await engine.wait_until(is_ready=True)
    await client.close()
    assert await engine.stop() == 0


async def test_a_core_that_stays_frozen_is_replaced(engine: EngineProcess) -> None:
    first = engine.core_pid()
    client = engine.client()
    engine.freeze_core()
    events = await collect(client.generate(ask("Hello")))
    assert ending(events).error_code == "engine_restarted"
    await engine.wait_until(is_ready=True)
    assert engine.core_pid() != first
    await client.close()


async def test_requests_between_two_cores_are_told_to_come_back(engine: EngineProcess) -> None:
    client = engine.client()
    for _ in range(3):  # each restart takes longer, so that there is a time without a core
        request = ask(script_text(tokens=3, die_after=1))
        assert ending(await collect(client.generate(request))).error_code == "engine_restarted"
        with pytest.raises(ModelLoading) as refusal:
            await client.submit(ask("Hello"))
        assert refusal.value.retryable
        assert refusal.value.retry_after_s
        await engine.wait_until(is_ready=True)
    await client.close()


async def test_a_new_front_does_not_know_the_old_ones_answers(engine: EngineProcess) -> None:
    client = engine.client()
    events = client.generate(ask(script_text(tokens=500, delay_ms=10)))
    await first_delta(events)
    await engine.kill_front()
    with pytest.raises(EngineUnavailable):
        await client.stats()
    await engine.start()
    with pytest.raises(GenerationUnknown):
        await collect(events)
    assert ending(await collect(client.generate(ask("Hello")))).finish_reason is FinishReason.STOP
    await client.close()


async def test_followers_of_a_front_that_stays_away_hear_that_it_is_gone(engine: EngineProcess) -> None:
    client = engine.client(patience_s=0.2)
    events = client.generate(ask(script_text(tokens=500, delay_ms=10)))
    await first_delta(events)
    await engine.kill_front()
    with pytest.raises(EngineUnavailable):
        await collect(events)
    await client.close()


async def test_the_core_ends_with_its_front(engine: EngineProcess) -> None:
    core = engine.core_pid()
    await engine.kill_front()
    async with asyncio.timeout(PATIENCE_S):
        while Path(f"/proc/{core}").exists():
            await asyncio.sleep(0.01)


async def test_a_stopped_front_ends_its_streams_first(engine: EngineProcess) -> None:
    client = engine.client()
    events = client.generate(ask(script_text(tokens=500, delay_ms=10)))
    await first_delta(events)
    stopping = asyncio.create_task(engine.stop())
    assert ending(await collect(events)).error_code == "engine_stopped"
    assert await stopping == 0
    await client.close()


async def test_an_answer_without_followers_ends_as_orphaned(run_folder: Path) -> None:
    engine = scripted_process(run_folder / "orphans", *QUICK, "--orphan-ttl-s", "0.3")
    await engine.start()
    client, request = engine.client(), ask(script_text(tokens=2000, delay_ms=10))
    events = client.generate(request)
    await first_delta(events)
    await events.aclose()
    async with asyncio.timeout(PATIENCE_S):
        while (await client.stats()).running:
            await asyncio.sleep(0.02)
    assert ending(await collect(client.attach(request.generation_id))).finish_reason is FinishReason.ORPHANED
    await client.close()
    await engine.stop()


async def test_the_log_of_an_ended_answer_goes_after_its_time(run_folder: Path) -> None:
    engine = scripted_process(run_folder / "logs", *QUICK, "--log-ttl-s", "1")
    await engine.start()
    client, request = engine.client(), ask("Hello")
    await collect(client.generate(request))
    assert text_of(await collect(client.attach(request.generation_id)))
    async with asyncio.timeout(PATIENCE_S):
        while (await client.stats()).live_logs:
            await asyncio.sleep(0.02)
    with pytest.raises(GenerationUnknown):
        await collect(client.attach(request.generation_id))
    await client.close()
    await engine.stop()


async def test_a_log_that_grows_too_large_ends_as_length(run_folder: Path) -> None:
    engine = scripted_process(run_folder / "large", *QUICK, "--log-max-bytes", "10000")
    await engine.start()
    client = engine.client()
    events = await collect(client.generate(ask(script_text(tokens=4000))))
    assert ending(events).finish_reason is FinishReason.LENGTH
    assert ending(events).usage.generated_tokens < 4000
    await client.close()
    await engine.stop()


async def test_a_queued_answer_is_cancelled_without_ever_running(run_folder: Path) -> None:
    engine = scripted_process(run_folder / "queue", *QUICK, "--max-batch", "1")
    await engine.start()
    client = engine.client()
    blocker, queued = ask(script_text(tokens=500, delay_ms=10)), ask("Hello")
    await first_delta(client.generate(blocker))
    events = client.generate(queued)
    assert await anext(events) == Queued(0)
    await client.cancel(queued.generation_id)
    done = ending(await collect(events))
    assert (done.finish_reason, done.usage.generated_tokens) == (FinishReason.CANCELLED, 0)
    await client.close()
    await engine.stop()


async def test_a_socket_is_private_and_serves_one_front(engine: EngineProcess) -> None:
    path = Path(engine.address.removeprefix("unix:"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    second = await asyncio.to_thread(subprocess.run, engine.argv, capture_output=True, check=False)
    assert second.returncode == 78
    assert b"listens on" in second.stdout
    await engine.wait_until(is_ready=True)


async def test_a_socket_that_nobody_listens_on_is_replaced(engine: EngineProcess) -> None:
    path = Path(engine.address.removeprefix("unix:"))
    await engine.kill_front()
    assert path.exists()
    await engine.start()
    client = engine.client()
    assert await client.health() is True
    await client.close()


async def test_an_interrupt_from_the_terminal_is_an_orderly_stop(engine: EngineProcess) -> None:
    assert engine.process is not None
    os.kill(engine.process.pid, signal.SIGINT)
    assert await asyncio.to_thread(engine.process.wait, 10) == 0


async def test_one_client_follows_many_answers_on_one_stream(engine: EngineProcess) -> None:
    client = engine.client()
    answers = await asyncio.gather(
        *(
            collect(client.generate(ask(script_text(text=f"answer {number} " * 5, delay_ms=2))))
            for number in range(20)
        )
    )
    assert [text_of(events) for events in answers] == [f"answer {number} " * 5 for number in range(20)]
    assert client._session().num_opened == 1
    await client.close()


async def test_deltas_arrive_while_the_answer_is_made(engine: EngineProcess) -> None:
    client = engine.client()
    request = ask(script_text(tokens=3, stall_after=2, stall_ms=60_000))
    events = client.generate(request)
    seen: list[Delta] = []
    async for event in events:
        seen += [event] if isinstance(event, Delta) else []
        if len(seen) == 2:
            break
    await client.cancel(request.generation_id)
    await client.close()


@pytest.mark.parametrize(
    ("flags", "what"),
    [
        (["--address", "127.0.0.1:0"], b"ENGINE_TOKEN, ENGINE_TLS_CERT, ENGINE_TLS_KEY"),
        (["--address", "127.0.0.1:0", "--token", "secret"], b"ENGINE_TLS_CERT, ENGINE_TLS_KEY"),
        (["--address", "unix:/tmp/" + "x" * 120], b"107 bytes"),
        (["--max-batch", "0"], b"ENGINE_MAX_BATCH"),
    ],
)
async def test_an_impossible_configuration_ends_with_its_own_exit_code(flags: list[str], what: bytes) -> None:
    argv = [sys.executable, "-m", "inference.testing", *flags]
    ended = await asyncio.to_thread(subprocess.run, argv, capture_output=True, check=False)
    assert ended.returncode == 78
    assert what in ended.stdout + ended.stderr


async def test_every_core_keeps_the_priority_that_the_front_gave_up(run_folder: Path) -> None:
    engine = scripted_process(run_folder / "nice", *QUICK, "--front-nice", "3")
    await engine.start()
    assert engine.process is not None
    ours = os.getpriority(os.PRIO_PROCESS, 0)
    first = engine.core_pid()
    assert os.getpriority(os.PRIO_PROCESS, engine.process.pid) == ours + 3
    assert os.getpriority(os.PRIO_PROCESS, first) == ours
    client = engine.client()
    await collect(client.generate(ask(script_text(tokens=3, die_after=1))))
    await engine.wait_until(is_ready=True)
    assert engine.core_pid() != first
    assert os.getpriority(os.PRIO_PROCESS, engine.core_pid()) == ours
    await client.close()
    await engine.stop()


async def test_a_follower_of_a_frozen_front_is_told_within_its_patience(run_folder: Path) -> None:
    engine = scripted_process(run_folder / "hung-front")
    await engine.start()
    assert engine.process is not None
    client = EngineClient(engine.address, patience_s=0.3, keepalive_s=0.2)
    events = client.generate(ask(script_text(tokens=1000, delay_ms=20)))
    await anext(events)
    engine.process.send_signal(signal.SIGSTOP)
    try:
        with pytest.raises(EngineUnavailable):
            async for _event in events:
                pass
    finally:
        engine.process.send_signal(signal.SIGCONT)
        await client.close()
        await engine.stop()


async def test_asking_often_whether_the_front_lives_does_not_cost_a_silent_stream(run_folder: Path) -> None:
    engine = scripted_process(run_folder / "silent-stream")
    await engine.start()
    client = EngineClient(engine.address, keepalive_s=0.1)
    # gRPC asks once a second at most; by default its server takes the fourth time in silence for an attack.
    events = await collect(client.generate(ask(script_text(tokens=2, first_delay_ms=4500))))
    assert text_of(events)
    assert client._session().num_opened == 1
    await client.close()
    await engine.stop()
