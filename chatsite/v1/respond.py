"""From turns to the HTTP response, whole or streamed, in the form that the door chose. The same for every door."""

from __future__ import annotations

from collections.abc import Sequence

from django.http import JsonResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase

from chatsite.accounts.grants import Grant
from chatsite.chat.admission import admitted
from chatsite.chat.pace import pace_of_site
from chatsite.chat.reply import begun
from chatsite.chat.turn import Turn
from chatsite.sse import HEADERS
from chatsite.v1.answers import gathered
from chatsite.v1.formats import Form, answer_headers
from chatsite.v1.limits import limit_headers
from chatsite.v1.stream import read_head, stream

IGNORED_FIELDS = "X-Ignored-Fields"


async def respond(turns: Sequence[Turn], form: Form, *, streams: bool, ignored: str) -> HttpResponseBase:
    """`ignored` names fields of the request that mean nothing here. Raises the refusal of any turn."""
    counted = await admitted(turns)
    response = await (_streamed if streams else _whole)(counted, form)
    for name, value in limit_headers(counted[0].standings or ()).items():
        response[name] = value
    if ignored:
        response[IGNORED_FIELDS] = ignored
    return response


async def _whole(turns: Sequence[Turn], form: Form) -> HttpResponseBase:
    answers, accepted = await gathered(turns)
    return JsonResponse(form.whole(answers), headers=answer_headers(accepted))


async def _streamed(turns: Sequence[Turn], form: Form) -> HttpResponseBase:
    tail = begun(turns, pace_of_site())
    try:
        accepted, early = await read_head(tail, len(turns))
    except BaseException:
        await tail.close()
        raise
    lines = stream(form, tail, early, len(turns), Grant.of_key(turns[0].caller))
    return StreamingHttpResponse(lines, headers=HEADERS | answer_headers(accepted))
