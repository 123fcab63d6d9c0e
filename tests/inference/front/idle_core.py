"""A core that is there, does nothing and keeps what it is told, for fronts inside a test."""

from __future__ import annotations

import asyncio
from typing import Any

from inference.config import EngineConfig
from inference.core.messages import Command, CoreReady
from inference.front.background import PREFIXES
from inference.front.core_process import Listener
from inference.front.engine import Engine
from inference.testing.front import scripted_model

READY = CoreReady("r", 4096, "none", "none", 1, 16, 1024, embedder="e", embedding_dim=1, embed_max_tokens=512)


class IdleCore:
    def __init__(self, listener: Listener) -> None:
        self.gave_up = asyncio.Event()
        self.is_ready = True
        self.num_restarts = 0
        self.commands: list[Command] = []

    def start(self) -> None: ...
    async def stop(self) -> None: ...
    def check_progress(self) -> None: ...
    def send(self, command: Command) -> None:
        self.commands.append(command)


def engine_over(ready: CoreReady = READY, **settings: Any) -> Engine:
    """A loaded engine without a process; `settings` are fields of EngineConfig."""
    config = EngineConfig(**settings)
    engine = Engine(config, scripted_model(config), IdleCore)
    engine.on_ready(ready)
    return engine


def told(engine: Engine, kind: type[Any]) -> list[Any]:
    """Commands of one kind that the core got on behalf of callers."""
    core = engine.core
    assert isinstance(core, IdleCore)
    return [c for c in core.commands if isinstance(c, kind) and not c.id.startswith(PREFIXES)]
