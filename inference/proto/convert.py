"""Between the plain values of `inference.types` and protobuf messages.

Knows both forms of the same facts. Knows no connection, no defaults and no limits.
"""

from __future__ import annotations

from collections.abc import Iterable

from inference.proto import engine_pb2 as pb
from inference.types import (
    Delta,
    Done,
    EngineInfo,
    EngineStats,
    Event,
    FinishReason,
    GenerateRequest,
    Grammar,
    Owner,
    Prefill,
    Queued,
    Sampling,
    Segment,
    SharedPrefixStats,
    TemplateFindings,
    Timings,
    TokenLogprob,
    Usage,
)

USAGE_FIELDS = tuple(Usage.__dataclass_fields__)
TIMING_FIELDS = tuple(Timings.__dataclass_fields__)
# Those that are no plain number.
BUILT_FIELDS = ("stop", "stop_ids", "logit_bias", "grammar")
SAMPLING_FIELDS = tuple(name for name in Sampling.__dataclass_fields__ if name not in BUILT_FIELDS)
SEGMENT_FIELDS = ("role", "text", "tokenizer", "tool_calls", "tool_call_id")
REQUEST_FIELDS = (
    "generation_id",
    "priority",
    "deadline_s",
    "is_offline",
    "may_trim",
    "tools",
    "tool_choice",
    "continues_answer",
)
TEMPLATE_FIELDS = tuple(TemplateFindings.__dataclass_fields__)
INFO_FIELDS = tuple(name for name in EngineInfo.__dataclass_fields__ if name != "template")
STATS_FIELDS = tuple(name for name in EngineStats.__dataclass_fields__ if name != "shared_prefixes")
PREFIX_FIELDS = tuple(SharedPrefixStats.__dataclass_fields__)
# What a value that does not fit its field raises: a wrong type, a lone surrogate, a number out of range, no Grammar.
UNSENDABLE = (TypeError, ValueError, OverflowError, AttributeError)


def segments_to_pb(segments: Iterable[Segment]) -> list[pb.Segment]:
    return [
        pb.Segment(token_ids=segment.token_ids, **{name: getattr(segment, name) for name in SEGMENT_FIELDS})
        for segment in segments
    ]


def segments_from_pb(segments: Iterable[pb.Segment]) -> tuple[Segment, ...]:
    return tuple(
        Segment(
            token_ids=tuple(segment.token_ids), **{name: getattr(segment, name) for name in SEGMENT_FIELDS}
        )
        for segment in segments
    )


def owner_to_pb(owner: Owner) -> pb.Owner:
    return pb.Owner(tenant=owner.tenant, user=owner.user, conversation=owner.conversation)


def owner_from_pb(owner: pb.Owner) -> Owner:
    return Owner(owner.tenant, owner.user, owner.conversation)


def sampling_to_pb(sampling: Sampling) -> pb.Sampling:
    given = {name: getattr(sampling, name) for name in SAMPLING_FIELDS}
    grammar = sampling.grammar
    return pb.Sampling(
        stop=sampling.stop,
        stop_ids=sampling.stop_ids,
        logit_bias=[pb.LogitBias(token_id=token, bias=bias) for token, bias in sampling.logit_bias],
        grammar=None if grammar is None else pb.Grammar(kind=grammar.kind, text=grammar.text),
        **{name: value for name, value in given.items() if value is not None},
    )


def sampling_from_pb(sampling: pb.Sampling) -> Sampling:
    given = {name: getattr(sampling, name) for name in SAMPLING_FIELDS if sampling.HasField(name)}
    bias = tuple((entry.token_id, entry.bias) for entry in sampling.logit_bias)
    grammar = Grammar(sampling.grammar.kind, sampling.grammar.text) if sampling.HasField("grammar") else None
    return Sampling(
        stop=tuple(sampling.stop),
        stop_ids=tuple(sampling.stop_ids),
        logit_bias=bias,
        grammar=grammar,
        **given,
    )


def request_to_pb(request: GenerateRequest) -> pb.SubmitRequest:
    return pb.SubmitRequest(
        segments=segments_to_pb(request.segments),
        sampling=sampling_to_pb(request.sampling),
        owner=owner_to_pb(request.owner),
        **{name: getattr(request, name) for name in REQUEST_FIELDS},
    )


def request_from_pb(request: pb.SubmitRequest) -> GenerateRequest:
    return GenerateRequest(
        segments=segments_from_pb(request.segments),
        owner=owner_from_pb(request.owner),
        sampling=sampling_from_pb(request.sampling),
        **{name: getattr(request, name) for name in REQUEST_FIELDS},
    )


def event_from_pb(event: pb.Event) -> Event:
    """Raises ValueError for a kind this side does not know (AttachFailed is handled by the session)."""
    kind = event.WhichOneof("kind")
    if kind == "delta":
        logprobs = tuple(map(logprob_from_pb, event.delta.logprobs))
        return Delta(event.seq, event.delta.text, tuple(event.delta.token_ids), logprobs)
    if kind == "done":
        return done_from_pb(event)
    if kind == "queued":
        return Queued(event.queued.position)
    if kind == "prefill":
        return Prefill(event.prefill.done, event.prefill.total)
    raise ValueError(f"unknown event kind {kind!r}")


def logprob_from_pb(entry: pb.TokenLogprob) -> TokenLogprob:
    return TokenLogprob(entry.token_id, entry.token, entry.logprob, tuple(map(logprob_from_pb, entry.top)))


def done_from_pb(event: pb.Event) -> Done:
    done = event.done
    return Done(
        seq=event.seq,
        finish_reason=FinishReason(done.finish_reason),
        usage=Usage(**{name: getattr(done.usage, name) for name in USAGE_FIELDS}),
        timings=Timings(**{name: getattr(done.timings, name) for name in TIMING_FIELDS}),
        error_code=done.error_code,
        error_message=done.error_message,
    )


def usage_to_pb(usage: Usage) -> pb.Usage:
    return pb.Usage(**{name: getattr(usage, name) for name in USAGE_FIELDS})


def timings_to_pb(timings: Timings) -> pb.Timings:
    return pb.Timings(**{name: getattr(timings, name) for name in TIMING_FIELDS})


def info_to_pb(info: EngineInfo) -> pb.InfoReply:
    template = pb.Template(**{name: getattr(info.template, name) for name in TEMPLATE_FIELDS})
    return pb.InfoReply(template=template, **{name: getattr(info, name) for name in INFO_FIELDS})


def info_from_pb(reply: pb.InfoReply) -> EngineInfo:
    template = TemplateFindings(**{name: getattr(reply.template, name) for name in TEMPLATE_FIELDS})
    return EngineInfo(template=template, **{name: getattr(reply, name) for name in INFO_FIELDS})


def stats_to_pb(stats: EngineStats) -> pb.StatsReply:
    prefixes = [
        pb.SharedPrefix(**{name: getattr(prefix, name) for name in PREFIX_FIELDS})
        for prefix in stats.shared_prefixes
    ]
    return pb.StatsReply(shared_prefixes=prefixes, **{name: getattr(stats, name) for name in STATS_FIELDS})


def stats_from_pb(reply: pb.StatsReply) -> EngineStats:
    prefixes = tuple(
        SharedPrefixStats(**{name: getattr(prefix, name) for name in PREFIX_FIELDS})
        for prefix in reply.shared_prefixes
    )
    return EngineStats(shared_prefixes=prefixes, **{name: getattr(reply, name) for name in STATS_FIELDS})
