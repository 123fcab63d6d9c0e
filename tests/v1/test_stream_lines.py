"""Lines of a stream, with answers that a test plays: what is said while nothing can be told."""

from __future__ import annotations

from uuid import UUID

import pytest

from chatsite.chat.events import Ended, Piece
from chatsite.chat.models import Origin, State
from chatsite.chat.pace import AT_ONCE
from chatsite.chat.tail import AnswerEvent, Tail
from chatsite.v1 import stream as streams
from chatsite.v1.chat_form import ChatForm
from chatsite.v1.formats import KEEP_ALIVE
from chatsite.v1.tools import Offer
from inference.tools.functions import Function

ONE = UUID(int=1)
OFFER = Offer((Function("write"),), format="hermes")


class Played(Tail):
    """An answer that comes piece by piece."""

    def __init__(self, texts: list[str]) -> None:
        super().__init__(AT_ONCE)
        pieces = [Piece(ONE, seq, 0, text) for seq, text in enumerate(texts)]
        self.events = iter([*pieces, Ended(ONE, State.COMPLETE, "stop", Origin.MODEL)])

    async def next(self, timeout_s: float | None = None) -> AnswerEvent:
        return 0, next(self.events)


@pytest.mark.parametrize("every_s", [0.0, 1000.0])
async def test_a_long_call_that_is_not_complete_keeps_the_stream_alive(
    every_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call leaves whole, and a proxy closes what says nothing: comments go out, no more often than otherwise."""
    monkeypatch.setattr(streams, "KEEP_ALIVE_S", every_s)
    written = ['<tool_call>\n{"name": "write", "arguments": {"text": "', *["word "] * 50, '"}}\n</tool_call>']
    form = ChatForm("c", "m", "f", offer=OFFER)
    lines = [line async for line in streams._lines(form, Played(written), [], 1)]
    num_alive = lines.count(KEEP_ALIVE)
    assert num_alive >= 50 if every_s == 0.0 else num_alive == 0
    assert b"".join(lines).count(b'"name":"write"') == 1 and lines[-1] == b"data: [DONE]\n\n"
