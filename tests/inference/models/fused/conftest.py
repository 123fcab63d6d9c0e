"""The compiled operations, for every kind of processor that this machine can play."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from inference.models.fused.native import build, processor
from inference.models.fused.native.library import NativeKernels
from tests.inference.core.conftest import for_all_processes


@pytest.fixture(autouse=True)
def _two_threads() -> Iterator[None]:
    """Work is split between them, and what they found is joined."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def native(tmp_path_factory: pytest.TempPathFactory) -> NativeKernels:
    return NativeKernels(_library(tmp_path_factory, processor.capability()))


@pytest.fixture(scope="session", params=["own", "AVX2"])
def at_level(
    request: pytest.FixtureRequest, native: NativeKernels, tmp_path_factory: pytest.TempPathFactory
) -> NativeKernels:
    """The second level is what most other machines have."""
    if request.param == "own":
        return native
    if processor.capability().name != "AVX512":
        pytest.skip("this processor is no better than that")
    return NativeKernels(_library(tmp_path_factory, processor.AVX2))


def _library(tmp_path_factory: pytest.TempPathFactory, level: processor.Capability) -> Path:
    """Compiled once for all processes of a run."""
    if shutil.which(build.COMPILER) is None:
        pytest.skip(f"there is no {build.COMPILER} here")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "capability", lambda: level)
        library = build.built(str(for_all_processes(tmp_path_factory)), print)
    assert library is not None
    return library
