"""Mistakes that the tests of the compiled operations find."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from inference.models.fused.native import build
from inference.models.fused.native.library import FEW_QUERIES, NativeKernels
from tests.inference.models.fused import test_native
from tests.inference.models.fused.paged import Asked, Dims

pytestmark = pytest.mark.slow  # each is compiled


def _windows(native: NativeKernels) -> None:
    test_native.test_windows_of_single_tokens(native, torch.float32, 16)


def _shared(native: NativeKernels) -> None:
    test_native.test_shared_beginnings(native, torch.float32)


def _many(native: NativeKernels) -> None:
    test_native.assert_attends(native, Dims(), [[Asked(300, FEW_QUERIES + 50)]])


MUTANTS: dict[str, tuple[str, str, str, Callable[[NativeKernels], None]]] = {
    "a query sees the next token": ("prefill.cpp", "/ group + 1;", "/ group + 2;", _many),
    "a window is a token too long": ("paged.h", "- layout.window)", "- layout.window - 1)", _windows),
    "a shared block is counted twice": (
        "decode.cpp",
        "split(alike, end);",
        "{ add(alike, (end - 1) * block_tokens_, end * block_tokens_); split(alike, end); }",
        _shared,
    ),
    "a block is shared that not all have whole": ("decode.cpp", "has_whole(other, block) &&", "", _shared),
    "only the first row gets what is shared": (
        "decode.cpp",
        "parts[piece.members[i]].push_back",
        "if (i == 0) parts[piece.members[i]].push_back",
        _shared,
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_killed(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which(build.COMPILER) is None:
        pytest.skip(f"there is no {build.COMPILER} here")
    source, right, wrong, check = MUTANTS[name]
    sources = shutil.copytree(build.SOURCES, tmp_path / "sources")
    text = (sources / source).read_text()
    assert right in text
    (sources / source).write_text(text.replace(right, wrong))
    monkeypatch.setattr(build, "SOURCES", sources)
    monkeypatch.setattr(
        build, "_OPTIONS", ["-O0" if option == "-O3" else option for option in build._OPTIONS]
    )
    library = build.built(str(tmp_path / "data"), print)
    assert library is not None
    with pytest.raises(AssertionError):
        check(NativeKernels(library))
