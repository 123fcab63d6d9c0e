"""Messages: read in pages, ask, ask again, go on. A door to `chatsite.chat.branches` and `chatsite.chat.ask`."""

from __future__ import annotations

import re
from collections.abc import Awaitable
from typing import Annotated, Any, Literal
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from ninja import Field, Header, Query, Router, Schema, Status

from chatsite.accounts.auth import caller_of
from chatsite.chat import branches, following, library, rewording
from chatsite.chat.ask import Asked, ask, ask_again, go_on
from chatsite.chat.ending import completed
from chatsite.chat.models import FINAL_STATES, LIVE_STATES, Message
from chatsite.chat.notices import Kind, board
from chatsite.chat.running import running
from chatsite.chat.schemas.messages import (
    MAX_WAIT_S,
    AgainIn,
    AskedOut,
    MessageOut,
    MessagePage,
    QuestionIn,
    RewordIn,
    SnapshotOut,
)
from chatsite.chat.store import Question
from chatsite.chat.turn import Caller
from chatsite.db import run_in_db
from chatsite.errors import InvalidRequest, NotFound

router = Router(tags=["messages"])

# New and whole; found again; accepted, to be followed.
ASKED = {200: AskedOut, 201: AskedOut, 202: AskedOut}
_PREFER_WAIT = re.compile(
    r"(?:^|[,;])\s*wait(?:\s*=\s*\"?(\d{1,6})\"?)?\s*(?:$|[,;])", re.IGNORECASE | re.ASCII
)

Wait = Annotated[
    float,
    Field(
        ge=0,
        le=MAX_WAIT_S,
        allow_inf_nan=False,
        description="Seconds to wait for the end of the answer; the header `Prefer: wait=SECONDS` does the same.",
    ),
]
Prefer = Annotated[str, Header(description="`wait` or `wait=SECONDS`.", examples=["wait=60"])]


class PageQuery(Schema):
    """Which messages: at most one of `before`, `after` and `around`; without any the last ones."""

    branch: Literal["active", "all"] | UUID = Field(
        default="active",
        description="`active`: the branch that is shown; `all`: every message in the order of their making; "
        "or the branch through a message.",
    )
    before: UUID | None = Field(default=None, description="What comes above this message.")
    after: UUID | None = Field(default=None, description="What comes below this message.")
    around: UUID | None = Field(
        default=None, description="This message and its neighbours; one of another branch shows that branch."
    )
    limit: int = Field(default=50, ge=1, le=200)

    def place(self) -> branches.Place | None:
        sides: dict[branches.Side, UUID | None] = {
            "before": self.before,
            "after": self.after,
            "around": self.around,
        }
        given = [branches.Place(side, message) for side, message in sides.items() if message is not None]
        if len(given) > 1:
            raise InvalidRequest("only one of before, after and around can be given.")
        return given[0] if given else None


@router.get("/conversations/{uuid:conversation}/messages", response={200: MessagePage})
async def list_messages(request: HttpRequest, conversation: UUID, query: Query[PageQuery]) -> dict[str, Any]:
    """A page of messages, oldest first; at first the last ones of the branch that is shown."""
    user_id = caller_of(request).user_id
    page = await run_in_db(
        branches.read, user_id, conversation, str(query.branch), query.place(), query.limit
    )
    return {"items": [shown(row) for row in page.messages], "before": page.before, "after": page.after}


@router.post("/conversations/{uuid:conversation}/messages", response=ASKED)
async def ask_question(
    request: HttpRequest,
    response: HttpResponse,
    conversation: UUID,
    body: QuestionIn,
    wait: Wait = 0,
    prefer: Prefer = "",
) -> Status[dict[str, Any]]:
    """Asks. 202 with an answer in the making, or with `wait` 201 with a whole one; 200 for a repeat.

    To edit a message, send the new text with the `parent` of the old one: it becomes another branch.
    """
    question = Question(
        body.client_message_id,
        body.text,
        conversation,
        body.parent,
        is_branch="parent" in body.model_fields_set,
    )
    caller = caller_of(request)
    return await _answered(caller, ask(caller, question), response, _wait_s(wait, prefer))


@router.post("/messages/{uuid:message}/answers", response=ASKED)
async def answer_again(
    request: HttpRequest,
    response: HttpResponse,
    message: UUID,
    body: AgainIn,
    wait: Wait = 0,
    prefer: Prefer = "",
) -> Status[dict[str, Any]]:
    """Another answer, beside the one that `message` is or below the question that it is; never one of the cache."""
    caller = caller_of(request)
    asking = ask_again(caller, body.client_message_id, message)
    return await _answered(caller, asking, response, _wait_s(wait, prefer))


@router.post("/messages/{uuid:message}/continue", response=ASKED)
async def continue_answer(
    request: HttpRequest,
    response: HttpResponse,
    message: UUID,
    body: AgainIn,
    wait: Wait = 0,
    prefer: Prefer = "",
) -> Status[dict[str, Any]]:
    """Lets an answer with `finish_reason` `length` go on: a new one beside it begins with its text.

    What is added is what the model would have written at once. Any other answer is refused with 409 `not_continuable`.
    """
    caller = caller_of(request)
    asking = go_on(caller, body.client_message_id, message)
    return await _answered(caller, asking, response, _wait_s(wait, prefer))


@router.post("/messages/{uuid:message}/reword", response={200: MessageOut, 201: MessageOut})
async def reword_question(request: HttpRequest, message: UUID, body: RewordIn) -> Status[dict[str, Any]]:
    """The question that `message` is or answers, in other words: another version of it, which keeps what followed it.

    Nothing is asked and nothing is counted. 409 `still_answering` while an answer to it is being made.
    """
    user_id = caller_of(request).user_id
    version, is_new = await run_in_db(rewording.reword, user_id, body.client_message_id, message, body.text)
    if is_new:
        await board.changed(user_id, Kind.REWORDED, [version.conversation_id])
    (row,) = await run_in_db(branches.messages_of, user_id, version.conversation_id, [version.pk])
    return Status(201 if is_new else 200, shown(row))


@router.get("/messages/{uuid:message}", response={200: SnapshotOut})
async def get_message(
    request: HttpRequest, message: UUID, after: Annotated[int, Field(ge=0, lt=2**63)] = 0
) -> dict[str, Any]:
    """A message as it is now, for clients that can only poll."""
    return _snapshot(await run_in_db(_own_message, caller_of(request).user_id, message), after)


async def _answered(
    caller: Caller, asking: Awaitable[Asked], response: HttpResponse, wait_s: float
) -> Status[dict[str, Any]]:
    """What was stored, as it is after `wait_s`. A client that goes away meanwhile ends nothing."""
    asked = await completed(asking)
    stored = asked.stored
    if stored.is_new:
        await board.asked(caller.user_id, stored.conversation, stored.generation)
    if wait_s:
        response["Preference-Applied"] = "wait"
        await following.wait_end(caller.user_id, stored.generation, wait_s)
    ids = (stored.user_message, stored.answer)
    question, answer = await run_in_db(branches.messages_of, caller.user_id, stored.conversation, ids)
    body = {
        "conversation": stored.conversation,
        "title": stored.title,
        "question": shown(question),
        "answer": shown(answer),
        "events": f"/api/generations/{stored.generation}/events",
    }
    if not stored.is_new:
        return Status(200, body)
    return Status(201 if answer.state in FINAL_STATES else 202, body)


def _wait_s(wait: float, prefer: str) -> float:
    """The longer one of what the query and the header ask for, within what is allowed."""
    found = _PREFER_WAIT.search(prefer)
    preferred = 0.0 if found is None else float(found[1]) if found[1] else MAX_WAIT_S
    return min(max(wait, preferred), MAX_WAIT_S)


def shown(message: Message) -> dict[str, Any]:
    """A message that `branches` loaded, by the names of the API."""
    generation = getattr(message, "generation", None)
    return {
        "id": message.pk,
        "parent": message.parent_id,
        "role": message.role,
        "text": message.text,
        "state": message.state,
        "created_at": message.created_at,
        "variants": message.variants,  # type: ignore[attr-defined]
        "feedback": message.verdict,  # type: ignore[attr-defined]
        "generation": library.figures(generation) if generation is not None else None,
    }


def _own_message(user_id: int, message: UUID) -> Message:
    rows = Message.objects.select_related("generation")
    row = rows.filter(pk=message, conversation__owner=user_id).first()
    if row is None:
        raise NotFound("there is no such message.")
    return row


def _snapshot(message: Message, after: int) -> dict[str, Any]:
    """From the live text where this process has it, else from the last checkpoint."""
    generation = getattr(message, "generation", None)
    live = running().get(generation.pk) if generation is not None and message.state in LIVE_STATES else None
    if live is not None:
        text, seq, state = live.text, live.seq, live.state.value
    else:
        text, seq, state = message.text, generation.stored_seq if generation is not None else 0, message.state
    is_news = seq > after or state not in LIVE_STATES
    return {
        "id": message.pk,
        "generation": generation.pk if generation is not None else None,
        "state": state,
        "seq": seq,
        "text": text if is_news else None,
    }
