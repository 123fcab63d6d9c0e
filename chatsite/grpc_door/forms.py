"""Between protobuf and what the other doors read and say. Knows shapes only.

A question is read as the REST door reads its JSON, so ranges, limits and messages of errors are the same.
"""

from __future__ import annotations

from typing import Any

import msgspec

from chatsite.chat.events import Accepted, Ended, Reading, Waiting
from chatsite.grpc_door import chat_pb2 as pb
from chatsite.json_body import decode_json
from chatsite.v1.errors import invalid
from chatsite.v1.formats import reasons_of
from inference.tools.calls import Call


def body_of(ask: pb.Ask) -> Any:
    """The JSON body of a chat completion that asks the same. Raises ApiError and InvalidText."""
    body: dict[str, Any] = decode_json(ask.options.encode()) if ask.options else {}
    if not isinstance(body, dict):
        raise invalid("options", "The options must be a JSON object.")
    for field, value in ask.ListFields():
        if field.name in body:
            raise invalid(field.name, f"'{field.name}' is given twice.")
        if field.name not in ("options", "messages", "cache", "stop"):
            body[field.name] = value
    if ask.messages:
        body["messages"] = [{"role": one.role, "content": one.content} for one in ask.messages]
    if ask.stop:
        body["stop"] = list(ask.stop)
    if ask.HasField("cache"):
        body["cache"] = {field.name.replace("_", "-"): value for field, value in ask.cache.ListFields()}
    return decode_json(msgspec.json.encode(body))


def accepted_of(event: Accepted) -> pb.Accepted:
    return pb.Accepted(
        generation=str(event.generation),
        cache=event.cache_outcome,
        cache_age_s=event.cache_age_s,
        trimmed_messages=event.trimmed_messages,
    )


def progress_of(event: Waiting | Reading) -> dict[str, pb.Queued | pb.Prefill]:
    """As a field of `ServerMessage`."""
    if isinstance(event, Waiting):
        return {"queued": pb.Queued(position=event.position)}
    return {"prefill": pb.Prefill(done=event.done, total=event.total)}


def part_of(part: str | Call) -> dict[str, pb.Delta | pb.ToolCall]:
    """As a field of `ServerMessage`."""
    if isinstance(part, str):
        return {"delta": pb.Delta(text=part)}
    return {"tool_call": pb.ToolCall(id=part.id, name=part.name, arguments=part.arguments)}


def done_of(ended: Ended, num_calls: int) -> pb.Done:
    counts, durations = ended.counts, ended.durations
    return pb.Done(
        finish_reason=reasons_of(ended, num_calls)["finish_reason"],
        prompt_tokens=counts.prompt_tokens,
        reused_tokens=counts.reused_tokens,
        generated_tokens=counts.generated_tokens,
        ttft_ms=durations.ttft_ms,
        queue_ms=durations.queue_ms,
        prefill_ms=durations.prefill_ms,
        decode_ms=durations.decode_ms,
    )
