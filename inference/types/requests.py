"""What callers of the engine ask for: prompts, sampling, whose it is."""

from __future__ import annotations

from dataclasses import dataclass, field

# The role of a segment that is a prompt by itself: no template writes around it, and its text may name control tokens.
RAW = "raw"


@dataclass(frozen=True, slots=True)
class Segment:
    """One message of the history, or alone and as RAW a whole prompt.

    `token_ids` is the ledger: the ids of an assistant message as generated. `tool_calls` is a JSON list of
    {id, name, arguments} that an assistant message made; `tool_call_id` names the call whose result a tool message is.
    """

    role: str
    text: str
    token_ids: tuple[int, ...] = ()
    tokenizer: str = ""
    tool_calls: str = ""
    tool_call_id: str = ""


# Kinds of grammars.
JSON_OBJECT, JSON_SCHEMA, LARK = "json_object", "json_schema", "lark"


@dataclass(frozen=True, slots=True)
class Grammar:
    """What an answer must look like: any JSON object, JSON that a schema allows, or texts of a Lark grammar."""

    kind: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Sampling:
    """Sampling of one request; None leaves the choice to the model's own defaults."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    max_tokens: int | None = None
    logprobs: int | None = None
    min_tokens: int | None = None
    logit_bias: tuple[tuple[int, float], ...] = ()
    stop_ids: tuple[int, ...] = ()
    grammar: Grammar | None = None
    speculate: bool | None = None  # changes how soon an answer comes, never what it says


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose KV this is, as opaque strings. KV is shared only inside equal (tenant, user)."""

    tenant: str
    user: str
    conversation: str = ""


@dataclass(frozen=True, slots=True)
class GenerateRequest:
    """One answer to make. `generation_id` is a UUID made by the caller; submitting it twice starts one generation."""

    generation_id: str
    segments: tuple[Segment, ...]
    owner: Owner
    sampling: Sampling = field(default_factory=Sampling)
    priority: int = 0
    deadline_s: float = 0.0
    is_offline: bool = False
    may_trim: bool = False
    # A JSON list of functions as the template is given them; tool_choice is auto (also ""), none, required or a name.
    tools: str = ""
    tool_choice: str = ""
    # The last segment is an answer that goes on: what is made comes right behind its last token.
    continues_answer: bool = False


@dataclass(frozen=True, slots=True)
class Submitted:
    """`trimmed_messages`: so many of the oldest were left out, because the history is longer than the window.
    `num_waiting`: so many requests have no place in the batch yet, this one among them.
    """

    engine: str
    prompt_tokens: int
    trimmed_messages: int = 0
    num_waiting: int = 0
