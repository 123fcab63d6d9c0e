"""What callers of the engine say and hear: requests and events as plain immutable values.

Knows no transport and no model. `inference.client` turns these into protobuf and back.
"""

from inference.types.engine import EngineInfo, EngineStats, SharedPrefixStats, TemplateFindings
from inference.types.events import (
    Delta,
    Done,
    Event,
    FinishReason,
    Prefill,
    Queued,
    Timings,
    TokenLogprob,
    Usage,
)
from inference.types.requests import (
    JSON_OBJECT,
    JSON_SCHEMA,
    LARK,
    RAW,
    GenerateRequest,
    Grammar,
    Owner,
    Sampling,
    Segment,
    Submitted,
)

__all__ = [
    "JSON_OBJECT",
    "JSON_SCHEMA",
    "LARK",
    "RAW",
    "Delta",
    "Done",
    "EngineInfo",
    "EngineStats",
    "Event",
    "FinishReason",
    "GenerateRequest",
    "Grammar",
    "Owner",
    "Prefill",
    "Queued",
    "Sampling",
    "Segment",
    "SharedPrefixStats",
    "Submitted",
    "TemplateFindings",
    "Timings",
    "TokenLogprob",
    "Usage",
]
