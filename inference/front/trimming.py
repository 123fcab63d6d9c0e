"""Which turns a history that is too long for the window loses.

Knows turns, token counts and the window. The system prompt and the last question with all behind it are never left
out; in between whole turns go, oldest first. The cut moves in strides that are counted from the beginning of the
conversation: until the next stride is due every prompt begins like the one before it, so its KV is reused. A cut
that moved with every turn would have the whole window read again for each answer.
Does not know how a prompt is made: the builder is given, and its ids are what counts in the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Protocol

from inference.errors import InvalidRequest
from inference.front.admission import estimate_tokens
from inference.front.prompts import Prompt
from inference.front.tokenizer import Tokenizer
from inference.types import Segment

# Of the window: what an answer may claim of it, and how far a cut moves.
ANSWER_SHARE, STRIDE_SHARE = 4, 4
# Where the template cannot be measured: role, header and end of a message.
FALLBACK_GLUE_TOKENS = 8
# Counts of texts by digest; when full it starts again, which costs one counting of the histories in use.
MAX_COUNTS = 65_536


class Build(Protocol):
    def __call__(
        self, segments: Sequence[Segment], *, tools: str = "", add_generation_prompt: bool = True
    ) -> Prompt: ...


@dataclass(frozen=True, slots=True)
class Room:
    """Tokens that a prompt may have so that its answer has room, and the length of a stride."""

    prompt_tokens: int
    stride_tokens: int
    max_context: int


def room_for(max_context: int, asked: int | None) -> Room:
    """`asked` is the longest answer that the request wants; None stands for as much as there is."""
    share = max(1, max_context // ANSWER_SHARE)
    answer = share if asked is None else min(asked, share)
    return Room(max_context - answer, max(1, max_context // STRIDE_SHARE), max_context)


@dataclass(frozen=True, slots=True)
class Fitted:
    """A prompt, the segments that it was made of, and how many others were left out."""

    prompt: Prompt
    segments: Sequence[Segment]
    trimmed_messages: int = 0


class Turns:
    """A history cut where a turn begins. Turn 0 may be an answer without a question. A result stays with its call."""

    def __init__(self, segments: Sequence[Segment]) -> None:
        num_system, inside = _num_leading_systems(segments), _inside_of_calls(segments)
        questions = [
            i for i, s in enumerate(segments) if s.role == "user" and i > num_system and i not in inside
        ]
        self.segments = segments
        self.head = segments[:num_system]
        self.starts = [num_system, *questions]

    @property
    def last(self) -> int:
        return len(self.starts) - 1

    def behind(self, turn: int) -> Sequence[Segment]:
        """The history without the turns before `turn`."""
        return without_oldest(self.segments, self.starts[turn] - self.starts[0])


class Trimmer:
    def __init__(self, build: Build, tokenizer: Tokenizer) -> None:
        self._build = build
        self._tokenizer = tokenizer
        self._counts: dict[tuple[int, int], int] = {}
        self._glue_tokens: int | None = None

    def fit(
        self,
        segments: Sequence[Segment],
        room: Room,
        *,
        tools: str = "",
        add_generation_prompt: bool = True,
        build: Build | None = None,
    ) -> Fitted:
        """The longest prompt that ends a stride and fits; where not even the last turn fits, the prompt of that.

        What is left out does not depend on `add_generation_prompt`: a warm-up reads what the answer will need.
        `build` makes prompts of another kind.
        """
        build = build or self._build
        turns = Turns(segments)
        num_tools = self._count(Segment("system", tools), room.max_context) if tools else 0
        sizes = _Sizes(
            turns, lambda segment: self._count(segment, room.max_context) + self._glue(), num_tools
        )
        turn = self._first_guess(turns, sizes, room)
        prompt = build(turns.behind(turn), tools=tools)
        while len(prompt.ids) > room.prompt_tokens and turn < turns.last:
            turn = sizes.next_cut(turn, room.stride_tokens)
            prompt = build(turns.behind(turn), tools=tools)
        kept = turns.behind(turn)
        if not add_generation_prompt:
            prompt = build(kept, tools=tools, add_generation_prompt=False)
        return Fitted(prompt, kept, len(segments) - len(kept))

    def _first_guess(self, turns: Turns, sizes: _Sizes, room: Room) -> int:
        """The first cut behind which all seems to fit, from counts of the messages alone: nothing is rendered."""
        if not sizes.num_tools and most_tokens(turns.segments) <= room.prompt_tokens:
            return 0
        turn = 0
        while turn < turns.last:
            answer_header = self._glue()
            if sizes.behind(turn) + answer_header <= room.prompt_tokens:
                return turn
            turn = sizes.next_cut(turn, room.stride_tokens)
        return turn

    def _count(self, segment: Segment, max_context: int) -> int:
        """Tokens of its text and calls alone. A text that could never be kept isn't worth being read."""
        least = estimate_tokens((segment,))
        if least > max_context:
            return least
        text = segment.text + segment.tool_calls
        key = (hash(text), len(text))  # never the text: what is deleted must not stay here
        count = self._counts.get(key)
        if count is None:
            count = len(self._tokenizer.encode_plain(text))
            if len(self._counts) >= MAX_COUNTS:
                self._counts.clear()
            self._counts[key] = count
        return count

    def _glue(self) -> int:
        """Tokens that the template puts around one message, measured once."""
        if self._glue_tokens is None:
            question, answer = Segment("user", "x"), Segment("assistant", "x")
            try:
                short, long = self._build([question]), self._build([question, answer, question])
                added = len(long.ids) - len(short.ids) - 2 * self._count(question, 1)
                self._glue_tokens = max(0, -(-added // 2))
            except InvalidRequest:
                self._glue_tokens = FALLBACK_GLUE_TOKENS
        return self._glue_tokens


class _Sizes:
    """Where every turn begins, in tokens from the beginning of the conversation; counted when first asked for.

    `num_tools` are those of the functions that every prompt shows.
    """

    def __init__(self, turns: Turns, count: Callable[[Segment], int], num_tools: int) -> None:
        self.num_tools = num_tools
        self._turns = turns
        self._count = count
        self._head_tokens = 0
        self._positions: list[int] = []  # of every turn, and of the end

    def behind(self, turn: int) -> int:
        positions = self._counted()
        return self._head_tokens + positions[-1] - positions[turn]

    def next_cut(self, turn: int, stride: int) -> int:
        """The first turn at or behind the next stride, or the last one."""
        positions, last = self._counted(), self._turns.last
        target = (positions[turn] // stride + 1) * stride
        return next((later for later in range(turn + 1, last) if positions[later] >= target), last)

    def _counted(self) -> list[int]:
        if not self._positions:
            turns = self._turns
            self._head_tokens = self.num_tools + sum(map(self._count, turns.head))
            borders = [*turns.starts, len(turns.segments)]
            sizes = [sum(map(self._count, turns.segments[start:end])) for start, end in pairwise(borders)]
            self._positions = list(accumulate(sizes, initial=0))
        return self._positions


def most_tokens(segments: Sequence[Segment]) -> int:
    """No prompt of these segments is longer, unless its template writes long texts of its own."""
    return sum(
        len((segment.text + segment.tool_calls).encode(errors="replace")) + 2 * FALLBACK_GLUE_TOKENS
        for segment in segments
    )


def without_oldest(segments: Sequence[Segment], num_messages: int) -> Sequence[Segment]:
    """The history as it is when so many messages are left out."""
    if not num_messages:
        return segments
    num_system = _num_leading_systems(segments)
    return (*segments[:num_system], *segments[num_system + num_messages :])


def least_kept(segments: Sequence[Segment]) -> Sequence[Segment]:
    """What no trimming leaves out."""
    turns = Turns(segments)
    return turns.behind(turns.last)


def _num_leading_systems(segments: Sequence[Segment]) -> int:
    return next((i for i, segment in enumerate(segments) if segment.role != "system"), len(segments))


def _inside_of_calls(segments: Sequence[Segment]) -> set[int]:
    """Places between a message that made calls and the last of their results."""
    inside: set[int] = set()
    called = None
    for place, segment in enumerate(segments):
        if segment.tool_calls:
            called = place
        elif segment.role == "tool" and called is not None:
            inside.update(range(called + 1, place))
    return inside
