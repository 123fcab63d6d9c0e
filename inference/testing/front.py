"""The real front with the scripted core and the byte tokenizer.

Knows how the two are put together; behaviour lives in `inference.front` and `inference.testing.core`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from inference import settings
from inference.config import EngineConfig
from inference.front.core_process import Connect, as_process
from inference.front.engine import Engine
from inference.front.launch import CoreCommand
from inference.front.model import ServedModel
from inference.front.prompts import PromptBuilder
from inference.front.sampling import SamplingDefaults
from inference.front.serve import serve
from inference.front.spawner import Spawner
from inference.front.templates import CHATML_WITH_TOOLS, ChatTemplate
from inference.testing.embedding import PAIR_SEPARATOR
from inference.testing.tokenizer import END_OF_TURN, ByteTokenizer

MODEL_NAME = "scripted"


async def serve_scripted(config: EngineConfig) -> int:
    def say(line: str) -> None:
        print(f"engine: {line}", flush=True)

    engine = Engine(config, scripted_model(config), scripted_core(config))
    return await serve(engine, say=say)


def scripted_core(config: EngineConfig) -> Connect:
    spawner = Spawner(config.front_nice)
    return as_process(core_command(config), step_timeout_s=config.step_timeout_s, spawner=spawner)


def core_command(config: EngineConfig) -> CoreCommand:
    """With an upstream the scripts are played there: see `inference.testing.upstream`."""
    if config.upstream:
        argv = [sys.executable, "-m", "inference.testing.gateway"]
        return CoreCommand(argv, settings.to_environ(config, "upstream_key"))
    return CoreCommand(
        [sys.executable, "-m", "inference.testing.core", "--max-batch", str(config.max_batch)], {}
    )


def scripted_model(config: EngineConfig) -> ServedModel:
    tokenizer = ByteTokenizer()
    return ServedModel(
        name=config.served_model_name or MODEL_NAME,
        tokenizer=tokenizer,
        prompts=PromptBuilder(tokenizer, ChatTemplate(CHATML_WITH_TOOLS)),
        stop_ids=frozenset({END_OF_TURN}),
        defaults=SamplingDefaults(),
        embed_ids=lambda texts, prefix, max_tokens: [list((prefix + text).encode()) for text in texts],
        pair_ids=_pair_ids,
    )


def _pair_ids(pairs: Sequence[tuple[str, str]], max_tokens: int) -> list[list[int]]:
    return [[*first.encode(), PAIR_SEPARATOR, *second.encode()] for first, second in pairs]
