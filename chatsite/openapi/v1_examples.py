"""Examples of `/v1`, short and whole. A test checks each against its own schema, and asks the requests for real."""

from __future__ import annotations

from json import dumps
from typing import Any

CREATED = 1_790_000_000
CHAT_MODEL = "smollm2-135m-instruct"
EMBEDDER = "multilingual-e5-small"
USAGE = {
    "prompt_tokens": 14,
    "completion_tokens": 3,
    "total_tokens": 17,
    "prompt_tokens_details": {"cached_tokens": 8},
}

MODEL = {"id": CHAT_MODEL, "object": "model", "created": 0, "owned_by": "rill"}
MODELS = {"object": "list", "data": [MODEL, MODEL | {"id": EMBEDDER}]}

CHAT = {
    "model": CHAT_MODEL,
    "messages": [
        {"role": "system", "content": "Answer briefly."},
        {"role": "user", "content": "What is the capital of France?"},
    ],
    "max_completion_tokens": 64,
    "temperature": 0.7,
    "stream": False,
}
_CHAT_FRAME: dict[str, Any] = {
    "id": "chatcmpl-1",
    "created": CREATED,
    "model": CHAT_MODEL,
    "system_fingerprint": "fp_3b0a1f7c9d2e",
}
CHAT_ANSWER = _CHAT_FRAME | {
    "object": "chat.completion",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "Paris.", "refusal": None, "annotations": []},
            "logprobs": None,
            "finish_reason": "stop",
        }
    ],
    "usage": USAGE,
}
CHAT_EVENT = {
    "data": dumps(
        _CHAT_FRAME
        | {
            "object": "chat.completion.chunk",
            "choices": [
                {"index": 0, "delta": {"content": "Paris."}, "logprobs": None, "finish_reason": None}
            ],
        }
    )
}

COMPLETION = {"model": CHAT_MODEL, "prompt": "Once upon a time", "max_tokens": 16}
COMPLETION_ANSWER = {
    "id": "cmpl-1",
    "object": "text_completion",
    "created": CREATED,
    "model": CHAT_MODEL,
    "choices": [{"text": " there was a river.", "index": 0, "logprobs": None, "finish_reason": "length"}],
    "system_fingerprint": "fp_3b0a1f7c9d2e",
    "usage": USAGE,
}
COMPLETION_EVENT = {
    "data": dumps(
        {
            "id": "cmpl-1",
            "object": "text_completion",
            "created": CREATED,
            "model": CHAT_MODEL,
            "choices": [{"text": " there was", "index": 0, "logprobs": None, "finish_reason": None}],
            "system_fingerprint": "fp_3b0a1f7c9d2e",
        }
    )
}

RESPONSE = {"model": CHAT_MODEL, "input": "What is the capital of France?", "instructions": "Answer briefly."}
RESPONSE_ANSWER = {
    "id": "resp_1",
    "object": "response",
    "created_at": CREATED,
    "completed_at": CREATED + 1,
    "status": "completed",
    "error": None,
    "incomplete_details": None,
    "instructions": "Answer briefly.",
    "max_output_tokens": None,
    "metadata": {},
    "model": CHAT_MODEL,
    "output": [
        {
            "id": "msg_1",
            "type": "message",
            "status": "completed",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Paris.", "annotations": [], "logprobs": []}],
        }
    ],
    "parallel_tool_calls": False,
    "previous_response_id": None,
    "reasoning": None,
    "service_tier": "default",
    "store": False,
    "temperature": 0.7,
    "text": {"format": {"type": "text"}},
    "tool_choice": "none",
    "tools": [],
    "top_p": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "top_logprobs": 0,
    "max_tool_calls": None,
    "background": False,
    "safety_identifier": None,
    "prompt_cache_key": None,
    "truncation": "auto",
    "usage": {
        "input_tokens": 14,
        "input_tokens_details": {"cached_tokens": 8, "cache_write_tokens": 0},
        "output_tokens": 3,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 17,
    },
}
RESPONSE_EVENT = {
    "event": "response.output_text.delta",
    "data": dumps(
        {
            "type": "response.output_text.delta",
            "sequence_number": 4,
            "item_id": "msg_1",
            "output_index": 0,
            "content_index": 0,
            "delta": "Paris.",
            "logprobs": [],
        }
    ),
}

EMBEDDING = {"model": EMBEDDER, "input": ["a river", "a mountain"], "encoding_format": "float"}
EMBEDDING_ANSWER = {
    "object": "list",
    "data": [{"object": "embedding", "index": 0, "embedding": [0.6, -0.8]}],
    "model": EMBEDDER,
    "usage": {"prompt_tokens": 5, "total_tokens": 5},
}
