"""A scripted engine for tests and demonstrations, shipped with the product.

Knows its own parts by name only: the scripted core imports this package and must start at once, so nothing heavy
is imported before it is asked for. What an answer does is asked for in the user's message: see `script`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inference.testing.harness import EngineProcess, UpstreamProcess, scripted_engine, scripted_process
    from inference.testing.script import script_text

__all__ = ["EngineProcess", "UpstreamProcess", "script_text", "scripted_engine", "scripted_process"]


def __getattr__(name: str) -> Any:
    if name == "script_text":
        from inference.testing import script

        return script.script_text
    if name in __all__:
        from inference.testing import harness

        return getattr(harness, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
