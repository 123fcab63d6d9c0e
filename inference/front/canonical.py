"""After a turn, in idle time: the history is prefilled in the form that it will have in the next turn.

Only for templates that change old turns (that cut thinking out, or trim): what was kept of such a turn ends where
the next prompt differs, and the answer would be read anew while somebody waits. Knows which turns ended. Does not
know when the engine is idle (it is told), nor how a prefill runs in the background.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from inference.core.messages import FinishedOut
from inference.errors import InvalidRequest
from inference.front.background import Background
from inference.front.counters import Counters
from inference.front.generation import Generation
from inference.front.model import ServedModel
from inference.front.offers import Offers
from inference.front.ownership import OwnerKeys
from inference.front.prompts import PromptBuilder
from inference.types import FinishReason, GenerateRequest, Owner, Segment

# An engine that is never idle collects turns; the newest are the likeliest to go on.
MAX_WAITING = 32
COMPLETE = (FinishReason.STOP, FinishReason.LENGTH)
# Two next questions that have no beginning in common: what their prompts share holds for every question.
QUESTIONS = ("a", "1")


@dataclass(frozen=True, slots=True)
class CanonicalParts:
    """Whom a canonicaliser works with. `is_idle`: nothing runs, waits or is being computed."""

    model: ServedModel
    keys: OwnerKeys
    background: Background
    counters: Counters
    offers: Offers
    is_idle: Callable[[], bool]


@dataclass(frozen=True, slots=True)
class _Turn:
    """A question that was asked; the answer is there when the turn has ended."""

    segments: tuple[Segment, ...]
    salt: bytes
    conversation: bytes
    answer: Segment = field(default_factory=lambda: Segment("assistant", ""))
    tools: str = ""


class Canonicaliser:
    """`is_on` is false for templates that never change old turns: then nothing is kept and nothing done."""

    def __init__(self, parts: CanonicalParts, *, is_on: bool) -> None:
        self._parts = parts
        self._is_on = is_on
        self._asked: dict[str, _Turn] = {}  # by generation
        self._ended: OrderedDict[bytes, _Turn] = OrderedDict()  # by conversation, newest last
        self._under_way: dict[str, bytes] = {}  # conversation by sequence
        self._building: tuple[bytes, asyncio.Task[None]] | None = None

    def on_asked(self, request: GenerateRequest) -> None:
        salt, conversation = (
            self._parts.keys.salt(request.owner),
            self._parts.keys.conversation(request.owner),
        )
        if self._is_on and conversation:
            self._asked[request.generation_id] = _Turn(
                request.segments, salt, conversation, tools=request.tools
            )

    def on_finished(self, generation: Generation) -> None:
        turn = self._asked.pop(generation.id, None)
        if turn is None or generation.ending is None or generation.ending.reason not in COMPLETE:
            return
        self._ended[turn.conversation] = replace(turn, answer=self._answer_of(generation, turn.tools))
        self._ended.move_to_end(turn.conversation)
        while len(self._ended) > MAX_WAITING:
            self._ended.popitem(last=False)

    def on_prefilled(self, out: FinishedOut) -> None:
        """A background sequence has ended; it may be one of ours."""
        if self._under_way.pop(out.id, None) is not None:
            self._parts.counters.canonicalised += out.reason == FinishReason.LENGTH

    def go_on(self) -> None:
        """Call often: takes up the turn that ended last when nothing else waits."""
        if self._ended and self._building is None and self._parts.is_idle():
            conversation, turn = self._ended.popitem()
            self._building = conversation, asyncio.create_task(self._prefill(turn))

    def give_up(self, owner: Owner) -> None:
        """The conversation goes on, or is forgotten. What is computed of a prefill under way stays kept."""
        conversation = self._parts.keys.conversation(owner)
        self._ended.pop(conversation, None)
        self._asked = {key: turn for key, turn in self._asked.items() if turn.conversation != conversation}
        if self._building is not None and self._building[0] == conversation:
            self._building[1].cancel()
            self._building = None
        for sequence_id in [key for key, other in self._under_way.items() if other == conversation]:
            del self._under_way[sequence_id]
            self._parts.background.stop(sequence_id)

    def clear(self) -> None:
        """The core is gone, and all KV with it."""
        if self._building is not None:
            self._building[1].cancel()
            self._building = None
        self._asked.clear()
        self._ended.clear()
        self._under_way.clear()

    async def _prefill(self, turn: _Turn) -> None:
        parts = self._parts
        ids = await asyncio.to_thread(
            missing_form, parts.model.prompts, turn.segments, turn.answer, turn.tools
        )
        self._building = None
        if not ids:
            return
        if parts.is_idle():
            self._under_way[parts.background.warm(ids, turn.salt, turn.conversation)] = turn.conversation
        else:
            self._ended.setdefault(turn.conversation, turn)

    def _answer_of(self, generation: Generation, tools: str) -> Segment:
        """As its readers have it: that is what comes back with the next question."""
        deltas = [event.delta for event in generation.log.after(0, generation.log.num_bytes)]
        text = "".join(delta.text for delta in deltas)
        ids = tuple(token for delta in deltas for token in delta.token_ids)
        text, tool_calls = self._parts.offers.read(text, tools)
        return Segment("assistant", text, ids, self._parts.model.tokenizer.fingerprint, tool_calls)


def missing_form(
    prompts: PromptBuilder, segments: Sequence[Segment], answer: Segment, tools: str = ""
) -> list[int]:
    """The ids with which every next turn begins, where kept KV does not hold them; empty where it does.

    What is kept is the prompt as it was, and the answer as it was generated.
    """
    kept = [*prompts.build(segments, tools=tools).ids, *answer.token_ids]
    try:
        form = next_form(prompts, [*segments, answer], tools)
    except InvalidRequest:
        return []  # a template that takes no further turn
    return form if _num_common(kept, form) < min(len(kept), len(form)) else []


def next_form(
    prompts: PromptBuilder, history: Sequence[Segment], tools: str = "", begun: str = ""
) -> list[int]:
    """The ids that the prompts of all next questions have in common that begin with `begun`: of all results, behind
    calls.

    Raises InvalidRequest.
    """
    role = "tool" if history and history[-1].tool_calls else "user"
    nexts = [[*history, Segment(role, f"{begun}{text}")] for text in QUESTIONS]
    first, second = (prompts.build(segments, tools=tools).ids for segments in nexts)
    return first[: _num_common(first, second)]


def _num_common(first: Sequence[int], second: Sequence[int]) -> int:
    shorter = min(len(first), len(second))
    return next((num for num in range(shorter) if first[num] != second[num]), shorter)
