"""Which turns are prefilled again in idle time, with which ids, and when not."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from inference.core.messages import Admit, Cancel, Command, FinishedOut, TokenOut
from inference.front.background import Background
from inference.front.canonical import MAX_WAITING, Canonicaliser, CanonicalParts, missing_form
from inference.front.counters import Counters
from inference.front.generation import Ending, Generation, GenerationLimits
from inference.front.model import ServedModel
from inference.front.model_tokenizer import ModelTokenizer
from inference.front.offers import Offers, template_json
from inference.front.ownership import OwnerKeys
from inference.front.prompts import PromptBuilder
from inference.front.templates import CHATML_WITH_TOOLS, ChatTemplate
from inference.models.tiny import byte_level_tokenizer
from inference.testing.tokenizer import ByteTokenizer
from inference.tools.calls import Call, as_json
from inference.tools.functions import Function
from inference.types import FinishReason, GenerateRequest, Owner, Segment
from tests.inference.front import families

OWNER = Owner("tenant", "user", "conversation")
QUESTION = (Segment("user", "How much is two and two?"),)
THINKING = "<think>\nNumbers.\n</think>\n\nFour."
KEYS = OwnerKeys("secret")


class Core:
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.commands: list[Command] = []

    def send(self, command: Command) -> None:
        self.commands.append(command)

    @property
    def prefills(self) -> list[Admit]:
        return [command for command in self.commands if isinstance(command, Admit)]


class Bench:
    """A canonicaliser over a core that only listens."""

    def __init__(self, source: str = families.QWEN_THINKING, *, is_on: bool = True) -> None:
        tokenizer = ByteTokenizer()
        self.model = ServedModel(
            "m", tokenizer, PromptBuilder(tokenizer, ChatTemplate(source)), stop_ids=frozenset()
        )
        self.core, self.counters, self.is_idle = Core(), Counters(), True
        background = Background(self.core)  # type: ignore[arg-type]
        offers = Offers("hermes", tokenizer)
        parts = CanonicalParts(self.model, KEYS, background, self.counters, offers, lambda: self.is_idle)
        self.canonical = Canonicaliser(parts, is_on=is_on)

    def turn(
        self,
        text: str = THINKING,
        *,
        owner: Owner = OWNER,
        reason: FinishReason = FinishReason.STOP,
        tools: str = "",
    ) -> None:
        """One turn from its question to its end."""
        name = f"g-{owner.conversation}"
        self.canonical.on_asked(GenerateRequest(name, QUESTION, owner, tools=tools))
        generation = Generation(
            name, 1, GenerationLimits(60, 10_000), tokenizer=self.model.tokenizer, clock=lambda: 0.0
        )
        for token in text.encode():
            generation.take(TokenOut(name, token))
            generation.publish()
        if reason is FinishReason.CANCELLED:
            generation.end_soon(Ending(reason))
        generation.finish(FinishedOut(name, reason))
        self.canonical.on_finished(generation)

    async def idle(self) -> None:
        """Ticks until nothing is built any more."""
        self.canonical.go_on()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.gather(task, return_exceptions=True)

    def next_prompt(self, question: str, answer: str = THINKING) -> list[int]:
        history = [*QUESTION, Segment("assistant", answer), Segment("user", question)]
        return self.model.prompts.build(history).ids


async def test_a_turn_that_ended_is_prefilled_as_the_next_prompt_will_have_it() -> None:
    bench = Bench()
    bench.turn()
    await bench.idle()
    (prefill,) = bench.core.prefills
    assert prefill.prompt_ids == bench.next_prompt("And three?")[: len(prefill.prompt_ids)]
    assert "Four." in (spelled := bench.model.tokenizer.decode(prefill.prompt_ids))
    assert "Numbers." not in spelled
    assert (prefill.salt, prefill.conversation) == (KEYS.salt(OWNER), KEYS.conversation(OWNER))
    assert prefill.is_background
    assert prefill.max_tokens == 0


async def test_a_turn_that_called_is_prefilled_as_the_prompt_with_the_result_will_have_it() -> None:
    """The answer comes back as text and calls: here without the blanks that the template would trim."""
    bench = Bench(CHATML_WITH_TOOLS.replace("message.content", "message.content | trim"))
    tools = template_json([Function("add", "Adds.")])
    bench.turn('So:\n\n<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>', tools=tools)
    await bench.idle()
    (prefill,) = bench.core.prefills
    call = Segment("assistant", "So:", tool_calls=as_json([Call("add", '{"a": 1}', "call_1")]))
    history = [*QUESTION, call, Segment("tool", "42", tool_call_id="call_1")]
    following = bench.model.prompts.build(history, tools=tools)
    assert prefill.prompt_ids == following.ids[: len(prefill.prompt_ids)]
    spelled = bench.model.tokenizer.decode(prefill.prompt_ids)
    assert "Adds." in spelled and spelled.endswith("<tool_response>\n")


async def test_a_prefill_is_counted_when_it_is_done() -> None:
    bench = Bench()
    bench.turn()
    await bench.idle()
    bench.canonical.on_prefilled(FinishedOut("warm:9", FinishReason.LENGTH))
    assert bench.counters.canonicalised == 0
    bench.canonical.on_prefilled(FinishedOut("warm:1", FinishReason.LENGTH))
    assert bench.counters.canonicalised == 1


async def test_an_answer_that_stays_as_it_is_is_not_prefilled_again() -> None:
    bench = Bench()
    bench.turn("Four.")
    await bench.idle()
    assert bench.core.commands == []


async def test_nothing_is_done_while_others_work_and_the_newest_turn_comes_first() -> None:
    bench = Bench()
    bench.is_idle = False
    for name in ("first", "second"):
        bench.turn(owner=Owner("tenant", "user", name))
    await bench.idle()
    assert bench.core.commands == []
    bench.is_idle = True
    await bench.idle()
    await bench.idle()
    keys = [prefill.conversation for prefill in bench.core.prefills]
    assert keys == [KEYS.conversation(Owner("tenant", "user", name)) for name in ("second", "first")]


async def test_a_turn_waits_on_when_work_came_while_its_form_was_built() -> None:
    bench = Bench()
    bench.turn()
    bench.canonical.go_on()
    bench.is_idle = False
    await bench.idle()
    assert bench.core.commands == []
    bench.is_idle = True
    await bench.idle()
    assert len(bench.core.prefills) == 1


async def test_under_load_old_turns_are_dropped() -> None:
    bench = Bench()
    bench.is_idle = False
    for number in range(MAX_WAITING + 10):
        bench.turn(owner=Owner("tenant", "user", f"c{number}"))
    bench.is_idle = True
    for _ in range(MAX_WAITING + 10):
        await bench.idle()
    assert len(bench.core.prefills) == MAX_WAITING


@pytest.mark.parametrize("reason", [FinishReason.FAILED, FinishReason.CANCELLED])
async def test_a_turn_that_is_not_complete_is_left_alone(reason: FinishReason) -> None:
    bench = Bench()
    bench.turn(reason=reason)
    await bench.idle()
    assert bench.core.commands == []


async def test_templates_that_keep_old_turns_cost_nothing() -> None:
    bench = Bench(is_on=False)
    bench.turn()
    await bench.idle()
    assert bench.core.commands == []


async def test_what_belongs_to_no_conversation_is_left_alone() -> None:
    bench = Bench()
    bench.turn(owner=Owner("tenant", "user"))
    await bench.idle()
    assert bench.core.commands == []


@pytest.mark.parametrize("is_building", [False, True])
async def test_a_forgotten_conversation_is_not_prefilled(is_building: bool) -> None:
    bench = Bench()
    bench.turn()
    if is_building:
        bench.canonical.go_on()
    bench.canonical.give_up(OWNER)
    await bench.idle()
    await bench.idle()
    assert bench.core.commands == []


async def test_a_turn_that_is_asked_while_the_conversation_is_forgotten_leaves_nothing() -> None:
    bench = Bench()
    bench.canonical.on_asked(GenerateRequest("g-conversation", QUESTION, OWNER))
    bench.canonical.give_up(OWNER)
    generation = Generation(
        "g-conversation", 1, GenerationLimits(60, 100), tokenizer=ByteTokenizer(), clock=lambda: 0.0
    )
    generation.finish(FinishedOut("g-conversation", FinishReason.STOP))
    bench.canonical.on_finished(generation)
    await bench.idle()
    assert bench.core.commands == []


async def test_the_next_turn_stops_a_prefill_under_way_and_it_is_not_counted() -> None:
    bench = Bench()
    bench.turn()
    await bench.idle()
    bench.canonical.give_up(OWNER)
    assert bench.core.commands[-1] == Cancel("warm:1", FinishReason.STOP)
    bench.canonical.on_prefilled(FinishedOut("warm:1", FinishReason.STOP))
    assert bench.counters.canonicalised == 0


async def test_with_the_core_everything_that_waits_is_gone() -> None:
    bench = Bench()
    bench.turn()
    bench.canonical.go_on()
    bench.turn(owner=Owner("tenant", "user", "other"))
    bench.canonical.clear()
    await bench.idle()
    assert bench.core.commands == []


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> ModelTokenizer:
    file = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    byte_level_tokenizer().save(str(file))
    return ModelTokenizer(file, eos_token="<|im_end|>")


ANSWERS = st.lists(
    st.sampled_from(["<think>", "</think>", "\n", " ", " the", "world", "你好"]), max_size=8
).map("".join)


@pytest.mark.parametrize("family", families.ALL)
@examples(max_examples=25)
@given(answer=ANSWERS, question=st.sampled_from(["why", "7", "go on", "你"]))
def test_after_the_prefill_only_the_question_is_new(
    tokenizer: ModelTokenizer, family: str, answer: str, question: str
) -> None:
    """Whichever is kept, the old form or the new one: the next prompt begins with as much as any next prompt can."""
    prompts = PromptBuilder(tokenizer, ChatTemplate(families.ALL[family]))
    said = Segment("assistant", answer, tuple(tokenizer.encode_plain(answer)), tokenizer.fingerprint)
    kept = [*prompts.build(QUESTION).ids, *said.token_ids]
    form = missing_form(prompts, QUESTION, said)
    following = prompts.build([*QUESTION, said, Segment("user", question)]).ids
    other = prompts.build([*QUESTION, said, Segment("user", "X")]).ids
    held = max(num_common(kept, following), num_common(form, following))
    assert held >= min(len(kept), num_common(following, other))
    assert form == following[: len(form)]


def num_common(first: list[int], second: list[int]) -> int:
    pairs = zip(first, second, strict=False)
    return next((num for num, (one, other) in enumerate(pairs) if one != other), min(len(first), len(second)))


def test_a_template_that_takes_no_further_turn_has_no_next_form() -> None:
    once = (
        "{% if messages | length > 1 %}{{ raise_exception('one question only') }}{% endif %}"
        + families.CHATML
    )
    tokenizer = ByteTokenizer()
    prompts = PromptBuilder(tokenizer, ChatTemplate(once))
    assert missing_form(prompts, QUESTION, Segment("assistant", "Four.")) == []
