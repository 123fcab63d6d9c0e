"""Which engine answers a request: by its model, by its conversation, and while some of them are away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest

from chatsite import engines as module
from chatsite.engine import Engine
from chatsite.engines import Engines
from chatsite.served import Served
from inference.client import EmbedResult, EngineClient
from inference.errors import EngineUnavailable, GenerationUnknown, InvalidRequest, ModelLoading, QueueFull
from inference.types import (
    Delta,
    EngineInfo,
    Event,
    GenerateRequest,
    Owner,
    Segment,
    Submitted,
)
from tests.patience import PATIENCE_S

INFO = EngineInfo(
    "e", "a", "r", "t", 100, 100, "fp32", "cpu", "", 0, 1, is_trial_model=False, default_temperature=0.0
)
OWNER = Owner("tenant", "user:1", "talk")
FOR_EVER_S = 1e6
QUEUE_GAP = 4
ASKED = (Segment("system", "Be brief."), Segment("user", "Hello"))
WORD = Delta(1, "word", (7,))


@dataclass(eq=False)
class Fake:
    """Stands for one engine: what it says, whom it knows, and whether it answers at all."""

    address: str
    info_: EngineInfo = INFO
    error: Exception | None = None
    refusal: Exception | None = None
    is_hung: bool = False
    num_waiting: int = 0
    knows: set[str] = field(default_factory=set)
    told: list[str] = field(default_factory=list)

    async def _answers(self, call: str) -> None:
        self.told.append(call)
        if self.is_hung:
            await asyncio.Event().wait()
        if self.error is not None:
            raise self.error

    async def info(self) -> EngineInfo:
        await self._answers("info")
        return self.info_

    async def submit(self, request: GenerateRequest) -> Submitted:
        await self._answers("submit")
        if self.refusal is not None:
            raise self.refusal
        self.knows.add(request.generation_id)
        return Submitted(self.info_.engine, 1, num_waiting=self.num_waiting)

    async def attach(self, generation: str, after: int = 0) -> AsyncGenerator[Event, None]:
        await self._answers(f"attach {after}")
        if generation not in self.knows:
            raise GenerationUnknown("no such generation")
        yield WORD
        yield replace(WORD, seq=2)

    async def cancel(self, generation: str, *, only_if_orphaned: bool = False) -> bool:
        await self._answers(f"cancel {only_if_orphaned}")
        return generation in self.knows

    async def forget(self, owner: Owner) -> int:
        await self._answers("forget")
        return 2

    async def embed(self, texts: Sequence[str]) -> EmbedResult:
        await self._answers("embed")
        return EmbedResult([], self.address)

    async def verify(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        await self._answers("verify")
        return [1.0]

    async def close(self) -> None:
        self.told.append("close")


def of(*fakes: Fake) -> Engines:
    return Engines([Engine(cast("EngineClient", fake)) for fake in fakes], QUEUE_GAP)


def serving(address: str, model: str, **fields: Any) -> Fake:
    names = {name: fields.pop(name) for name in ("embedder", "verifier", "revision") if name in fields}
    return Fake(address, replace(INFO, model=model, **names), **fields)


def request(conversation: str = "talk") -> GenerateRequest:
    return GenerateRequest("g", ASKED, replace(OWNER, conversation=conversation))


async def best(engines: Engines, model: str, conversation: str, segments: Sequence[Segment] = ASKED) -> str:
    ranked = await engines.ranked(model, replace(OWNER, conversation=conversation), segments)
    return ranked[0].address


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SAYS_WITHIN_S", 0.05)
    monkeypatch.setattr("chatsite.engine.SAYS_WITHIN_S", 0.05)
    monkeypatch.setattr(module, "LOOK_S", 0.01)


async def test_a_conversation_leaves_a_queue_that_is_much_longer_than_another() -> None:
    fakes = [serving("x", "a"), serving("y", "a")]
    engines = of(*fakes)
    home = await best(engines, "a", "talk")
    there = next(fake for fake in fakes if fake.address == home)
    for there.num_waiting, is_at_home in ((QUEUE_GAP - 1, True), (QUEUE_GAP, False)):
        await engines.submit(request(), "a")
        assert (await best(engines, "a", "talk") == home) is is_at_home
    # The other one is no better off: then it is its KV that counts.
    for fake in fakes:
        fake.num_waiting = QUEUE_GAP
    await engines.submit(request(), "a")
    assert await best(engines, "a", "talk") == home


async def test_an_engine_that_is_away_is_no_better_than_a_long_queue() -> None:
    there, gone = (
        serving("x", "a", num_waiting=9 * QUEUE_GAP),
        serving("y", "a", error=EngineUnavailable("down")),
    )
    engines = of(there, gone)
    await engines.served()
    gone.info_, gone.error = INFO, None
    await engines.submit(request(), "a")
    assert await best(engines, "a", "talk") == "x"


async def test_a_queue_that_was_long_is_forgotten_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    fakes = [serving("x", "a"), serving("y", "a")]
    engines = of(*fakes)
    home = await best(engines, "a", "talk")
    for fake in fakes:
        fake.num_waiting = QUEUE_GAP
    await engines.submit(request(), "a")
    assert await best(engines, "a", "talk") != home
    monkeypatch.setattr("chatsite.engine.QUEUE_FRESH_S", 0.0)
    assert await best(engines, "a", "talk") == home


async def test_a_request_goes_to_the_engine_of_its_model() -> None:
    one, two = serving("x", "a"), serving("y", "b")
    engines = of(one, two)
    for number in range(20):
        assert await best(engines, "b", str(number)) == "y"
        assert await best(engines, "a", str(number)) == "x"
    engine, _ = await engines.submit(request(), "b")
    assert engine.address == "y"
    assert (one.told, two.told) == (["info"], ["info", "submit"])


async def test_without_a_model_the_first_one_answers() -> None:
    engines = of(serving("x", "a"), serving("y", "b"))
    assert await best(engines, "", "talk") == "x"
    assert await best(engines, "gone", "talk") == "x", "a model that nobody serves any more"


async def test_a_model_that_may_be_that_of_a_silent_engine_is_nobody_elses() -> None:
    engines = of(serving("x", "a"), serving("y", "b", error=EngineUnavailable("down")))
    with pytest.raises(EngineUnavailable, match="serves b "):
        await best(engines, "b", "talk")
    assert await best(engines, "a", "talk") == "x"


async def test_conversations_stay_with_their_engine_and_spread_over_all() -> None:
    addresses = ("x", "y", "z")
    engines = of(*(serving(address, "a") for address in addresses))
    placed = {str(number): await best(engines, "a", str(number)) for number in range(300)}
    again = of(*(serving(address, "a") for address in reversed(addresses)))
    assert placed == {name: await best(again, "a", name) for name in placed}, (
        "in whatever order they are named"
    )
    for address in addresses:
        assert 60 < list(placed.values()).count(address) < 140
    without_z = of(serving("x", "a"), serving("y", "a"))
    moved = [name for name in placed if await best(without_z, "a", name) != placed[name]]
    assert moved and {placed[name] for name in moved} == {"z"}, "only its own share moves"


async def test_what_is_known_beforehand_is_said_by_the_one_that_is_asked_first() -> None:
    engines = of(serving("x", "a", revision="1"), serving("y", "a", revision="2"), serving("z", "b"))
    for conversation in map(str, range(20)):
        owner = replace(OWNER, conversation=conversation)
        said = await engines.foremost("a", owner, ASKED)
        engine, _ = await engines.submit(request(conversation), "a")
        assert engine.info is said
    down = of(serving("x", "a"), serving("y", "b", error=EngineUnavailable("down")))
    assert await down.foremost("b", OWNER, ASKED) is None
    assert await of(serving("x", "a")).foremost("b", OWNER, ASKED) is not None, (
        "one alone answers whatever is asked"
    )


async def test_conversations_of_two_tenants_are_no_neighbours() -> None:
    engines = of(*(serving(address, "a") for address in ("x", "y", "z", "w")))

    async def of_tenant(tenant: str) -> list[str]:
        owners = [Owner(tenant, "u", str(number)) for number in range(40)]
        return [(await engines.ranked("a", owner, ASKED))[0].address for owner in owners]

    assert await of_tenant("one") != await of_tenant("two")


async def test_without_a_conversation_the_beginning_of_the_prompt_decides() -> None:
    engines = of(*(serving(address, "a") for address in ("x", "y", "z", "w")))
    later = (*ASKED, Segment("assistant", "Hi."), Segment("user", "More."))
    assert await best(engines, "a", "", ASKED) == await best(engines, "a", "", later)
    many = {await best(engines, "a", "", (ASKED[0], Segment("user", str(number)))) for number in range(60)}
    assert many == {"x", "y", "z", "w"}


@pytest.mark.parametrize("error", [EngineUnavailable("down"), ModelLoading("soon"), QueueFull("full")])
async def test_a_question_goes_to_the_next_engine_of_its_model(error: Exception) -> None:
    fakes = [serving("x", "a"), serving("y", "a"), serving("z", "b")]
    engines = of(*fakes)
    first, second = await engines.ranked("a", OWNER, ASKED)
    cast("Fake", first.client).refusal = error
    assert (await engines.submit(request(), "a"))[0] is second
    assert fakes[2].told == ["info"], "another model's engine is not asked"
    assert first.is_away is isinstance(error, EngineUnavailable)


async def test_an_engine_that_was_not_reached_comes_last_until_it_answers_again() -> None:
    engines = of(serving("x", "a"), serving("y", "a"))
    first, second = await engines.ranked("a", OWNER, ASKED)
    cast("Fake", first.client).refusal = EngineUnavailable("down")
    await engines.submit(request(), "a")
    assert await engines.ranked("a", OWNER, ASKED) == [second, first]
    first._asked_at = float("-inf")  # as if some seconds had gone by
    await engines.served()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert await engines.ranked("a", OWNER, ASKED) == [first, second]


async def test_what_no_engine_could_make_better_is_refused_at_once() -> None:
    engines = of(serving("x", "a"), serving("y", "a"))
    first, second = await engines.ranked("a", OWNER, ASKED)
    cast("Fake", first.client).refusal = InvalidRequest("no")
    with pytest.raises(InvalidRequest):
        await engines.submit(request(), "a")
    assert "submit" not in cast("Fake", second.client).told


async def test_where_none_takes_it_one_that_loads_is_worth_waiting_for() -> None:
    engines = of(serving("x", "a"), serving("y", "a"))
    for engine, error in zip(
        await engines.ranked("a", OWNER, ASKED),
        (EngineUnavailable("down"), ModelLoading("soon")),
        strict=True,
    ):
        cast("Fake", engine.client).refusal = error
    with pytest.raises(ModelLoading):
        await engines.submit(request(), "a")


async def test_an_engine_that_was_started_again_with_another_model_makes_no_answer_for_the_first() -> None:
    changed = serving("x", "a")
    engines = of(changed, serving("y", "b"))
    await engines.served()
    changed.info_ = replace(INFO, engine="later", model="c")
    with pytest.raises(EngineUnavailable, match="serves a "):
        await engines.submit(request(), "a")
    assert changed.told[-1] == "cancel False"
    assert [info.model for info in (await engines.served()).models] == ["c", "b"]


async def test_one_engine_alone_answers_whatever_it_was_started_again_with() -> None:
    changed = serving("x", "a")
    engines = of(changed)
    await engines.served()
    changed.info_ = replace(INFO, engine="later", model="c")
    engine, _ = await engines.submit(request(), "a")
    assert engine.info == changed.info_ and "cancel False" not in changed.told


async def test_whoever_makes_an_answer_is_found_by_asking_all() -> None:
    one, two = serving("x", "a"), serving("y", "b", knows={"g"})
    assert [event.seq async for event in of(one, two).attach("g", 3) if isinstance(event, Delta)] == [1, 2]
    assert "attach 3" in one.told and "attach 3" in two.told
    assert await of(one, two).cancel("g", only_if_orphaned=True)
    assert "cancel True" in two.told
    with pytest.raises(GenerationUnknown):
        await anext(of(one, two).attach("unknown"))
    with pytest.raises(EngineUnavailable, match="down"):  # that one may know it
        await anext(of(one, serving("y", "b", error=EngineUnavailable("down"))).attach("unknown"))
    assert not await of(one, two).cancel("unknown")


ASKING: dict[str, Callable[[Engines], Any]] = {
    "attach": lambda engines: anext(engines.attach("g")),
    "cancel": lambda engines: engines.cancel("g"),
}


@pytest.mark.parametrize("ask", ASKING.values(), ids=ASKING)
async def test_an_engine_that_hangs_holds_nobody_up(ask: Callable[[Engines], Any]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        assert await ask(of(serving("x", "a", is_hung=True), serving("y", "b", knows={"g"})))
        with pytest.raises(EngineUnavailable):  # it may be the one that knows
            await ask(of(serving("x", "a", is_hung=True), serving("y", "b")))


async def test_a_hung_engine_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    engines = of(serving("x", "a"), serving("y", "b", is_hung=True))
    assert [info.model for info in (await engines.served()).infos] == ["a"]
    monkeypatch.setattr(module, "SAYS_WITHIN_S", FOR_EVER_S)
    monkeypatch.setattr("chatsite.engine.SAYS_WITHIN_S", FOR_EVER_S)
    engines.every[1]._asked_at = float("-inf")  # so it is still late
    async with asyncio.timeout(PATIENCE_S):
        for _ in range(5):
            assert (await engines.served("a")).chosen("a") is not None
            await engines.served()


async def test_a_model_that_nobody_is_known_to_serve_is_worth_asking_the_silent_for() -> None:
    late = serving("y", "b", error=EngineUnavailable("down"))
    engines = of(serving("x", "a"), late)
    await engines.served()
    late.error = None
    assert (await engines.served("b")).named("b") is not None


async def test_what_is_erased_is_told_to_all_or_counts_as_not_told() -> None:
    one, two = serving("x", "a"), serving("y", "b")
    assert await of(one, two).forget(OWNER) == 4
    two.error = EngineUnavailable("down")
    with pytest.raises(EngineUnavailable):
        await of(one, two).forget(OWNER)


async def test_vectors_come_from_the_first_engine_that_has_an_embedder() -> None:
    fakes = [
        serving("x", "a"),
        serving("y", "b", embedder="e1"),
        serving("z", "c", embedder="e2", verifier="v"),
    ]
    engines = of(*fakes)
    assert (await engines.embed(["text"])).embedder == "y"
    assert (await engines.served()).embedder == "e1"
    await engines.verify([("a", "b")])
    assert [fake.told for fake in fakes] == [["info"], ["info", "embed"], ["info", "verify"]]


async def test_one_engine_alone_is_asked_nothing_beside() -> None:
    only = serving("x", "a", knows={"g"})
    engines = of(only)
    assert await best(engines, "whatever", "talk") == "x"
    await engines.submit(request(), "whatever")
    assert [event async for event in engines.attach("g")]
    assert await engines.cancel("g")
    await engines.embed(["text"])
    await engines.verify([])
    assert only.told == ["submit", "attach 0", "cancel False", "embed", "verify"]


async def test_what_it_serves_is_asked_again_behind_the_scenes(monkeypatch: pytest.MonkeyPatch) -> None:
    only = serving("x", "a")
    engines = of(only)
    for _ in range(3):
        assert [info.model for info in (await engines.served()).models] == ["a"]
        await asyncio.sleep(0)
    assert only.told == ["info"]
    only.is_hung = True
    engines.every[0]._asked_at = float("-inf")
    monkeypatch.setattr("chatsite.engine.SAYS_WITHIN_S", FOR_EVER_S)
    async with asyncio.timeout(PATIENCE_S):  # nobody waits for it
        assert (await engines.served()).chosen("b") is not None, "what it said stays true while it is away"
    await engines.close()
    assert only.told[-1] == "close"


def test_each_model_is_listed_once_in_the_order_of_the_engines() -> None:
    infos = [replace(INFO, model=model, revision=revision) for model, revision in ("b1", "a1", "b2")]
    known = Served(tuple(infos), is_all=True)
    assert known.models == (infos[0], infos[1])
    assert known.named("b") is infos[0] and known.named("c") is None
    assert known.chosen("c") is infos[0] and known.chosen() is infos[0] and known.chosen("a") is infos[1]
    assert Served(tuple(infos)).chosen("c") is None and Served().chosen() is None
    assert Served(is_all=True).chosen("c") is None
