"""ChatGPT's `conversations.json`: a list of conversations, each a mapping of nodes with parents.

What people and the model said in text is kept with its branches. Hidden instructions, tool calls with their results,
thoughts, and pictures are left out; what came below them hangs on what came above. An answer in several parts becomes
one. Knows that file's shape and ours; knows no rows.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, cast

import msgspec
from msgspec import Meta

from chatsite.chat.transfer.form import MAX_CONVERSATIONS, MAX_MESSAGES, MAX_TEXT_CHARS, Made, Talk, Turn

SHOWN = frozenset({"user", "assistant"})
TEXTS = frozenset({"text", "multimodal_text"})
# Parts before a fork are written once for each of its branches, so a small file may hold a great deal.
MAX_CHAT_CHARS = 20_000_000
MAX_FILE_CHARS = 50_000_000
Seconds = Annotated[float, Meta(ge=0, le=32_503_680_000)]  # to the year 3000
Id = Annotated[str, Meta(max_length=200)]


class Author(msgspec.Struct, frozen=True):
    role: str


class Content(msgspec.Struct, frozen=True):
    content_type: str = ""
    parts: list[Any] | None = None


class Said(msgspec.Struct, frozen=True):
    author: Author
    content: Content | None = None
    create_time: Seconds | None = None
    recipient: str | None = None
    metadata: dict[str, Any] | None = None


class Node(msgspec.Struct, frozen=True):
    message: Said | None = None
    parent: Id | None = None


class Chat(msgspec.Struct, frozen=True):
    mapping: Annotated[dict[Id, Node], Meta(max_length=MAX_MESSAGES)]
    title: str | None = None
    create_time: Seconds | None = None
    update_time: Seconds | None = None
    current_node: Id | None = None
    is_archived: bool | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """One message of theirs. `before` is the part before it by the same side; `above` the turn that it all follows."""

    role: Literal["user", "assistant"]
    text: str
    created_at: datetime
    model: str
    above: int | None
    before: Part | None = None

    def whole(self) -> str:
        texts, part = [], cast("Part | None", self)
        while part is not None:
            texts.append(part.text)
            part = part.before
        return "\n\n".join(reversed(texts))


def talks_of(value: list[Any]) -> list[Talk]:
    """Raises msgspec.ValidationError, which says where."""
    chats = msgspec.convert(value, Annotated[list[Chat], Meta(max_length=MAX_CONVERSATIONS)])
    talks, num_chars = [], 0
    for place, chat in enumerate(chats):
        reader = _Reader(chat, f"$[{place}]")
        talks.append(reader.talk())
        num_chars += reader.num_chars
        if num_chars > MAX_FILE_CHARS:
            raise msgspec.ValidationError(f"All texts together are too long - at `$[{place}]`")
    return talks


class _Reader:
    """Walks one mapping from its roots down, parents before children, and numbers the turns that it finds.

    A turn ends at a node below which the other side comes next, on some branch, or nobody does.
    """

    def __init__(self, chat: Chat, where: str) -> None:
        self._chat = chat
        self._where = where
        self._began = _moment(chat.create_time) or datetime.fromtimestamp(0, UTC)
        self._children: dict[str | None, list[str]] = defaultdict(list)
        for name, node in chat.mapping.items():
            self._children[node.parent if node.parent in chat.mapping else None].append(name)
        self._parts: dict[str | None, Part | None] = {None: None}  # the last one on the way to a node
        self._numbers: dict[str | None, int] = {}  # of the last turn on that way
        self._turns: list[Turn] = []
        self.num_chars = 0

    def talk(self) -> Talk:
        chat = self._chat
        self._walk()
        return Talk(
            title=" ".join((chat.title or "").split())[:200],
            created_at=self._began,
            updated_at=_moment(chat.update_time) or self._began,
            messages=self._turns,
            active=self._active(),
            is_archived=bool(chat.is_archived),
        )

    def _walk(self) -> None:
        waiting: list[tuple[str, str | None]] = [(name, None) for name in reversed(self._children[None])]
        num_seen = 0
        while waiting:
            name, above = waiting.pop()
            num_seen += 1
            self._visit(name, above)
            waiting += [(child, name) for child in reversed(self._children.get(name, ()))]
        if num_seen < len(self._chat.mapping):
            raise msgspec.ValidationError(f"A message is below itself - at `{self._where}.mapping`")

    def _visit(self, name: str, above: str | None) -> None:
        part = self._parts[above]
        if above in self._numbers:
            self._numbers[name] = self._numbers[above]
        said = self._chat.mapping[name].message
        if said is not None and (text := _text_of(said)):
            part = self._part(said, text, part, self._numbers.get(above))
            next_roles = self._next_roles(name)
            if not next_roles or any(role != part.role for role in next_roles):
                self._end_turn(name, part)
        self._parts[name] = part

    def _part(self, said: Said, text: str, before: Part | None, above: int | None) -> Part:
        role = cast("Literal['user', 'assistant']", said.author.role)
        moment, model = _moment(said.create_time) or self._began, _model_of(said)
        if before is not None and before.role == role:
            return Part(role, text, moment, before.model or model, before.above, before)
        return Part(role, text, moment, model, above)

    def _next_roles(self, name: str) -> list[str]:
        """Who speaks next below a node, on each branch."""
        found: list[str] = []
        waiting = list(self._children.get(name, ()))
        while waiting:
            below = waiting.pop()
            said = self._chat.mapping[below].message
            if said is not None and _text_of(said):
                found.append(said.author.role)
            else:
                waiting += self._children.get(below, ())
        return found

    def _end_turn(self, name: str, part: Part) -> None:
        text = part.whole()
        self.num_chars += len(text)
        if len(text) > MAX_TEXT_CHARS or self.num_chars > MAX_CHAT_CHARS:
            raise msgspec.ValidationError(f"The texts are too long - at `{self._where}.mapping`")
        number = len(self._turns) + 1
        made = Made(model=part.model) if part.role == "assistant" else None
        self._turns.append(Turn(number, part.above, part.role, text, part.created_at, made=made))
        self._numbers[name] = number

    def _active(self) -> int | None:
        """The last answer on the way to the node that was shown."""
        at = self._chat.current_node
        while at is not None and at in self._chat.mapping:
            number = self._numbers.get(at)
            if number is not None and self._turns[number - 1].role == "assistant":
                return number
            at = self._chat.mapping[at].parent
        return next((turn.number for turn in reversed(self._turns) if turn.role == "assistant"), None)


def _text_of(said: Said) -> str:
    """What is shown of it, as text; "" for what is not shown."""
    content, hidden = said.content, (said.metadata or {}).get("is_visually_hidden_from_conversation")
    if (
        said.author.role not in SHOWN
        or content is None
        or content.content_type not in TEXTS
        or hidden is True
    ):
        return ""
    if said.recipient not in (None, "all"):  # the model speaks to a tool
        return ""
    return "\n\n".join(part for part in content.parts or () if isinstance(part, str) and part.strip()).strip()


def _model_of(said: Said) -> str:
    model = (said.metadata or {}).get("model_slug")
    return model[:200] if isinstance(model, str) else ""


def _moment(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
