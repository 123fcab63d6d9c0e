"""Cores over tiny random models, and plain transformers as the reference."""

from __future__ import annotations

import functools
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from inference import settings
from inference.config import EngineConfig
from inference.core.startup import assemble
from inference.models.fused.choice import kernels_for
from inference.models.fused.native import build
from inference.models.loader import LoadedModel, load_causal_lm, load_served
from inference.models.resolve import resolve
from inference.models.tiny import write_tiny_model
from tests.inference.core.driver import Driver

UNFUSED = "-unfused"  # behind a family's name: through the layers of transformers, although ours would do
PLAIN = "-plain"  # through our layers with small operations in plain torch
MakeDriver = Callable[..., Driver]
Reference = Callable[[list[int], int], list[int]]
RandomPrompt = Callable[[int], list[int]]


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def load_tiny(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], LoadedModel]:
    """A family's tiny model by the layers and operations that the engine would take at best, or by others: `UNFUSED`
    or `PLAIN` behind the name."""
    loaded: dict[str, LoadedModel] = {}
    data_dir = str(for_all_processes(tmp_path_factory))

    def load(name: str) -> LoadedModel:
        if name not in loaded:
            family = name.removesuffix(UNFUSED).removesuffix(PLAIN)
            folder = write_tiny_model(tmp_path_factory.mktemp(name) / "model", family)
            layers = "transformers" if name.endswith(UNFUSED) else "auto"
            kernels = "torch"
            if not name.endswith((UNFUSED, PLAIN)) and build.built(data_dir, print) is not None:
                kernels = "native"
            loaded[name] = load_served(folder, "fp32", "cpu", layers, kernels=kernels_for(kernels, data_dir))
        return loaded[name]

    return load


def for_all_processes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of this run, whichever of its processes asks: what is compiled is compiled once."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if own.name.startswith("popen-") else own


@pytest.fixture
def make_driver(load_tiny: Callable[[str], LoadedModel]) -> MakeDriver:
    """A fresh core over a tiny model; `num_blocks` limits the pool, other fields are those of EngineConfig."""

    def make(family: str = "llama", num_blocks: int = 0, salt_id: str = "", **fields: object) -> Driver:
        model = load_tiny(family)
        config = EngineConfig(kv_memory_mb=4, **fields)  # type: ignore[arg-type]
        return Driver(assemble(config, model, num_blocks=num_blocks, salt_id=salt_id).loop)

    return make


@pytest.fixture
def driver(make_driver: MakeDriver) -> Driver:
    return make_driver()


@pytest.fixture
def random_prompt() -> RandomPrompt:
    """Prompts of a given length; the same test always gets the same ones."""
    source = random.Random(7)
    return lambda length: [source.randrange(3, 300) for _ in range(length)]


@pytest.fixture
def reference(load_tiny: Callable[[str], LoadedModel]) -> Callable[..., list[int]]:
    """What `generate()` of transformers answers greedily, with its own attention and cache."""

    def generate(prompt: list[int], num_tokens: int, family: str = "llama") -> list[int]:
        return plain_generate(load_tiny(family).folder, prompt, num_tokens)

    return generate


@functools.cache
def _plain_model(folder: Path) -> Any:
    return load_causal_lm(folder, "fp32", "cpu", "eager").model


def plain_generate(folder: Path, prompt: list[int], num_tokens: int) -> list[int]:
    model = _plain_model(folder)
    options = {"do_sample": False, "eos_token_id": None, "pad_token_id": 0, "max_new_tokens": num_tokens}
    ids = torch.tensor([prompt])
    answer = model.generate(ids, attention_mask=torch.ones_like(ids), **options)
    return list(answer[0, len(prompt) :].tolist())


@pytest.fixture(scope="session")
def real_model_folder() -> Path:
    """The default model, prepared under TEST_DATA_DIR, else under DATA_DIR."""
    data_dir = os.environ.get("TEST_DATA_DIR") or settings.read(EngineConfig).data_dir
    return resolve(EngineConfig().model, data_dir)
