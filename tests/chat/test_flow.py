"""The life of one answer over the socket: accepted, streamed, stored, ended once."""

from __future__ import annotations

from uuid import UUID

import pytest

from chatsite.accounts.models import UsageRecord, User
from chatsite.chat.models import Generation, Message
from chatsite.db import run_in_db
from inference.testing import script_text
from tests.chat.socket import Socket


def stored(generation: str) -> Generation:
    return Generation.objects.select_related("message").get(pk=generation)


async def test_an_answer_is_streamed_stored_and_booked(socket: Socket, user: User) -> None:
    accepted, done = await socket.ask("hello there")
    assert socket.text_of(done) == "You said: hello there (2 words)"
    row = await run_in_db(stored, done["generation"])
    assert (row.state, row.message.text, row.message.state) == ("complete", socket.text_of(done), "complete")
    assert done["finish_reason"] == "stop"
    assert done["origin"] == "model"
    assert str(row.message.pk) == accepted["answer"]
    booked = await run_in_db(UsageRecord.objects.get, generation=UUID(done["generation"]))
    assert (booked.user_id, booked.generated_tokens) == (user.pk, row.generated_tokens)
