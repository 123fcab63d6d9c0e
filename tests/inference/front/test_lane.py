"""The embedding lane in the front: nothing waits for a core that is gone, and the bound counts what the core holds."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from inference.core.messages import Command, CoreReady, Embedded, EmbedTexts, StepPack, Verified, VerifyPairs
from inference.errors import EncoderFailed, EngineUnavailable, ModelLoading, NotSupported, QueueFull
from inference.front.lane import MAX_WAITING_TEXTS, Lane
from inference.front.server import EngineService


class FakeCore:
    def __init__(self) -> None:
        self.is_ready = True
        self.sent: list[Command] = []

    def send(self, command: Command) -> None:
        self.sent.append(command)


def make_lane() -> tuple[Lane, FakeCore]:
    core = FakeCore()
    return Lane(core), core  # type: ignore[arg-type]


async def test_texts_that_come_between_two_cores_are_refused_at_once() -> None:
    lane, core = make_lane()
    core.is_ready = False
    with pytest.raises(ModelLoading):
        await lane.embed([[1]])
    assert core.sent == []
    assert not lane.has_pending


async def test_texts_that_nobody_waits_for_count_until_the_core_is_done_with_them() -> None:
    lane, core = make_lane()
    given_up = asyncio.create_task(lane.embed([[1]] * MAX_WAITING_TEXTS))
    await asyncio.sleep(0)
    given_up.cancel()
    await asyncio.gather(given_up, return_exceptions=True)
    assert lane.has_pending
    with pytest.raises(QueueFull):
        await lane.embed([[1]])
    (request,) = core.sent
    assert isinstance(request, EmbedTexts)
    lane.on_step(StepPack(embedded=[Embedded(request.id, 1, b"")]))
    assert not lane.has_pending


async def test_a_lost_core_leaves_nothing_pending() -> None:
    lane, _ = make_lane()
    waiting = asyncio.create_task(lane.embed([[1]]))
    await asyncio.sleep(0)
    lane.fail_all("gone")
    with pytest.raises(EngineUnavailable):
        await waiting
    assert not lane.has_pending


async def test_a_fault_of_an_encoder_is_the_engines_fault_and_hits_its_own_request_only() -> None:
    lane, core = make_lane()
    embedding = asyncio.create_task(lane.embed([[1]]))
    verifying = asyncio.create_task(lane.verify([[1]]))
    healthy = asyncio.create_task(lane.embed([[2]]))
    await asyncio.sleep(0)
    texts, pairs, others = core.sent
    assert isinstance(texts, EmbedTexts) and isinstance(pairs, VerifyPairs) and isinstance(others, EmbedTexts)
    lane.on_step(
        StepPack(
            embedded=[Embedded(texts.id, 1, b"", "broke"), Embedded(others.id, 1, b"1234")],
            verified=[Verified(pairs.id, [], "broke")],
        )
    )
    for failing in (embedding, verifying):
        with pytest.raises(EncoderFailed, match="broke"):
            await failing
    assert (await healthy).vectors == b"1234"
    assert not lane.has_pending


@pytest.mark.parametrize("supports_verify", [False, True])
async def test_without_a_verifier_pairs_are_not_supported(supports_verify: bool) -> None:
    """Neither where the core has none nor where the front has no tokenizer for it."""
    ready = CoreReady("r", 100, "fp32", "cpu", 1, 1, 1, supports_verify=supports_verify)
    pair_ids = None if supports_verify else (lambda pairs, max_tokens: [[1]])
    engine = SimpleNamespace(loaded=lambda: ready, model=SimpleNamespace(pair_ids=pair_ids))
    with pytest.raises(NotSupported):
        await EngineService(engine)._verify([("a", "b")])  # type: ignore[arg-type]
