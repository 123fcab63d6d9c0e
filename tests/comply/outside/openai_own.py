"""A pytest plugin for openai-python's own API tests: our key, our models, and which of their tests cannot apply.

Loaded inside their checkout with `-p openai_own`; knows nothing of our tests. Their code is run as it is.
"""

from __future__ import annotations

import os
import re
import sys
from typing import Any

import pytest
from openai import AsyncOpenAI, OpenAI

CHAT_MODEL, EMBEDDER = os.environ["COMPLY_MODELS"].split()
OURS = {
    "gpt-6-astra": CHAT_MODEL,
    "gpt-3.5-turbo-instruct": CHAT_MODEL,
    "text-embedding-3-small": EMBEDDER,
}
NOTHING_STORED = "nothing is stored under /v1, so there is nothing to read, change, list or end"
ALL_AT_ONCE = "gives every parameter a value of its type, which no server can honour together: {}"
# file: {part of a test's name: why it cannot apply}. What is decided in the client alone (test_path_params) does run.
CANNOT_APPLY = {
    "chat/test_completions.py": {
        "create_with_all_params": ALL_AT_ONCE.format(
            "max_tokens 0, a logit_bias for the token 'foo', functions beside tools, audio"
        ),
        "(retrieve|update|list|delete)": NOTHING_STORED,
    },
    "api_resources/test_completions.py": {
        "create_with_all_params": ALL_AT_ONCE.format("best_of 0, echo, a suffix, a logit_bias for 'foo'"),
    },
    "test_embeddings.py": {
        "create_with_all_params": ALL_AT_ONCE.format("dimensions 1; a model has the dimensions it has"),
        r"create\[(strict|aiohttp)\]": "the client asks for base64, and its strict mode then wants numbers: only "
        "a mock that overlooks encoding_format passes",
    },
    "test_models.py": {"delete": "models are the operator's, who serves others by a setting"},
    "test_responses.py": {
        "create_with_all_params": ALL_AT_ONCE.format(
            "background, conversation and previous_response_id at once"
        ),
        "create": "asks with an empty body; a request names its model and has an input",
        "(retrieve|delete|cancel)": NOTHING_STORED,
        "compact": "a stateless server has no history to compact",
    },
}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    reasons = {item: _reason(item) for item in items}
    left_out = [item for item in items if reasons[item]]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if not reasons[item]]


def pytest_collection_finish(session: pytest.Session) -> None:
    sys.modules["tests.conftest"].api_key = os.environ["COMPLY_KEY"]  # type: ignore[attr-defined]
    for client in (OpenAI, AsyncOpenAI):
        _name_our_models(client)


def _reason(item: pytest.Item) -> str:
    if "path_params" in item.name:
        return ""
    rules = next((rules for file, rules in CANNOT_APPLY.items() if str(item.path).endswith(file)), {})
    return next((why for part, why in rules.items() if re.search(part, item.name)), "")


def _name_our_models(client: Any) -> None:
    """Every request is theirs but for the name of the model."""
    build = client._build_request

    def named(self: Any, options: Any, **more: Any) -> Any:
        if isinstance(options.json_data, dict) and options.json_data.get("model") in OURS:
            options.json_data = options.json_data | {"model": OURS[options.json_data["model"]]}
        for theirs, ours in OURS.items():
            options.url = options.url.replace(f"/models/{theirs}", f"/models/{ours}")
        return build(self, options, **more)

    client._build_request = named
