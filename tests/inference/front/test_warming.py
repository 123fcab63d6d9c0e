"""When a conversation is read ahead of its question, with which ids, and when that is given up."""

from __future__ import annotations

import pytest

from inference.core.messages import Admit, Cancel, Command, CoreStats
from inference.front.background import Background
from inference.front.prompts import PromptBuilder
from inference.front.templates import ChatTemplate
from inference.front.warming import LEAST_ROOM, MAX_UNDER_WAY, PATIENCE_S, Warming, ids_ahead
from inference.testing.tokenizer import ByteTokenizer
from inference.types import Segment
from tests.inference.front import families

IDLE = CoreStats(blocks_total=100)
HISTORY = (Segment("user", "Which is the longest river?"), Segment("assistant", "The Nile."))


class Core:
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.commands: list[Command] = []

    def send(self, command: Command) -> None:
        self.commands.append(command)

    @property
    def stopped(self) -> list[str]:
        return [command.id for command in self.commands if isinstance(command, Cancel)]

    @property
    def begun(self) -> list[str]:
        return [command.id for command in self.commands if isinstance(command, Admit)]


@pytest.fixture
def core() -> Core:
    return Core()


@pytest.fixture
def warming(core: Core) -> Warming:
    return Warming(Background(core))  # type: ignore[arg-type]


@pytest.fixture(params=[families.CHATML, families.MISTRAL], ids=["chatml", "mistral"])
def prompts(request: pytest.FixtureRequest) -> PromptBuilder:
    return PromptBuilder(ByteTokenizer(), ChatTemplate(request.param))


@pytest.mark.parametrize("end", [" of them all?", "s", "\n\nAnd why?"])
def test_every_end_of_a_draft_goes_on_from_what_was_read(prompts: PromptBuilder, end: str) -> None:
    draft = "And which is the second longest"
    ids = ids_ahead(prompts, [*HISTORY, Segment("user", draft)])
    asked = prompts.build([*HISTORY, Segment("user", draft + end)]).ids
    assert asked[: len(ids)] == ids
    assert len(ids) >= len(ids_ahead(prompts, HISTORY)) + len(draft) - 1


def test_behind_an_answer_any_question_goes_on_from_what_was_read(prompts: PromptBuilder) -> None:
    ids = ids_ahead(prompts, HISTORY)
    for question in ("And the second longest?", "x", "你好"):
        asked = prompts.build([*HISTORY, Segment("user", question)]).ids
        assert asked[: len(ids)] == ids
    assert len(ids) > len(prompts.build(HISTORY, add_generation_prompt=False).ids) - 2


def test_nothing_is_read_ahead_while_somebody_waits(warming: Warming) -> None:
    assert warming.has_room(IDLE, b"ann")
    assert not warming.has_room(CoreStats(blocks_total=100, waiting=1), b"ann")


def test_prefills_that_wait_themselves_are_no_queue(warming: Warming) -> None:
    warming.begin([1, 2], b"ann", b"c", 0.0)
    assert warming.has_room(CoreStats(blocks_total=100, running=1, waiting=1), b"bob")


def test_nothing_is_read_ahead_where_answers_need_the_blocks(warming: Warming) -> None:
    most = round(100 * (1 - LEAST_ROOM))
    assert warming.has_room(CoreStats(blocks_total=100, blocks_used=most - 1), b"ann")
    assert not warming.has_room(CoreStats(blocks_total=100, blocks_used=most + 1), b"ann")
    assert not warming.has_room(CoreStats(), b"ann")


def test_a_user_has_one_under_way_the_newest(warming: Warming, core: Core) -> None:
    for number in range(3):
        warming.begin([number], b"ann", b"c%d" % number, 0.0)
    assert core.stopped == core.begun[:2]


def test_others_are_let_in_until_there_are_many(warming: Warming) -> None:
    for number in range(MAX_UNDER_WAY):
        assert warming.has_room(IDLE, b"user-%d" % number)
        warming.begin([1], b"user-%d" % number, b"c", 0.0)
    assert not warming.has_room(IDLE, b"one more")
    assert warming.has_room(IDLE, b"user-3"), "a newer one takes the place of the old one"


def test_the_question_ends_it(warming: Warming, core: Core) -> None:
    warming.begin([1], b"ann", b"c", 0.0)
    warming.give_up(b"ann", b"another")
    assert core.stopped == []
    warming.give_up(b"ann", b"c")
    assert core.stopped == core.begun


def test_so_does_forgetting_all_of_a_user(warming: Warming, core: Core) -> None:
    warming.begin([1], b"ann", b"c", 0.0)
    warming.give_up(b"ann", b"")
    assert core.stopped == core.begun


def test_one_that_never_had_its_turn_is_given_up(warming: Warming, core: Core) -> None:
    warming.begin([1], b"ann", b"c", 0.0)
    warming.sweep(PATIENCE_S)
    assert core.stopped == []
    warming.sweep(PATIENCE_S + 1)
    assert core.stopped == core.begun


def test_one_that_has_ended_is_not_stopped(warming: Warming, core: Core) -> None:
    warming.begin([1], b"ann", b"c", 0.0)
    warming.on_finished(core.begun[0])
    warming.begin([1], b"ann", b"c", 0.0)
    assert core.stopped == []
