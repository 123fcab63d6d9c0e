"""The engine: continuous batching, KV reuse and embeddings, behind a gRPC door or as a library in one process.

`LLM` and `Answer` are the library (`inference.offline`). They are loaded when somebody asks for them: whoever only
talks to an engine, such as the web process, must not load a model's libraries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inference.offline import LLM, Answer

__all__ = ["LLM", "Answer"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from inference import offline

    return getattr(offline, name)
