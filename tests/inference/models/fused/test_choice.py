"""Which form runs is a setting's, the processor's and the data folder's choice, and people are told."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from inference.models.errors import ModelNotUsable
from inference.models.fused.choice import kernels_for
from inference.models.fused.kernels import PlainKernels
from inference.models.fused.native import build, processor
from inference.models.fused.native.library import NativeKernels
from tests.inference.core.conftest import for_all_processes


@pytest.fixture
def compiled(native: NativeKernels, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A data folder with a library for this processor."""
    return str(for_all_processes(tmp_path_factory))


@pytest.mark.parametrize("setting", ["auto", "native"])
def test_compiled_ones_are_taken_where_they_are(compiled: str, setting: str) -> None:
    kernels = kernels_for(setting, compiled)(torch.bfloat16, "cpu")
    assert isinstance(kernels, NativeKernels)
    assert kernels.name == "small operations in C++"


def test_torch_is_taken_when_it_is_asked_for(compiled: str) -> None:
    assert isinstance(kernels_for("torch", compiled)(torch.float32, "cpu"), PlainKernels)


@pytest.mark.parametrize(("dtype", "device"), [(torch.float16, "cpu"), (torch.float32, "cuda")])
def test_what_they_do_not_compute_is_left_to_torch(compiled: str, dtype: torch.dtype, device: str) -> None:
    assert isinstance(kernels_for("auto", compiled)(dtype, device), PlainKernels)
    with pytest.raises(ModelNotUsable, match="ENGINE_KERNELS=native: they compute fp32 and bf16 on a CPU"):
        kernels_for("native", compiled)(dtype, device)


def test_without_a_library_the_engine_runs_or_refuses_in_one_line(tmp_path: Path) -> None:
    assert isinstance(kernels_for("auto", str(tmp_path))(torch.float32, "cpu"), PlainKernels)
    with pytest.raises(ModelNotUsable, match=r"ENGINE_KERNELS=native: .* has none for this processor"):
        kernels_for("native", str(tmp_path))(torch.float32, "cpu")


def test_a_library_of_a_better_processor_is_not_loaded(
    compiled: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "capability", lambda: processor.DEFAULT)
    assert build.found(compiled) is None


def test_a_damaged_library_is_left_to_torch(
    compiled: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    damaged = tmp_path / "kernels.so"
    damaged.write_bytes(b"no library")
    monkeypatch.setattr(build, "found", lambda data_dir: damaged)
    assert isinstance(kernels_for("auto", str(tmp_path))(torch.float32, "cpu"), PlainKernels)


def test_another_torch_and_other_sources_are_other_libraries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    level = processor.AVX2
    names = {build._folder(str(tmp_path), level), build._folder(str(tmp_path), processor.AVX512)}
    monkeypatch.setattr(build, "SOURCES", tmp_path)
    names.add(build._folder(str(tmp_path), level))
    monkeypatch.setattr("importlib.metadata.version", lambda name: "9.9")
    names.add(build._folder(str(tmp_path), level))
    assert len(names) == 4


def test_a_failed_compile_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []
    (tmp_path / "broken.cpp").write_text("this is no C++")
    monkeypatch.setattr(build, "SOURCES", tmp_path)
    for _ in range(2):
        assert build.built(str(tmp_path / "data"), lines.append) is None
    assert lines[0].startswith("compiling small operations for ")
    assert lines[1].startswith("small operations in plain torch: g++: ")
    assert build.found(str(tmp_path / "data")) is None
    assert len(lines) == 4


def test_without_a_compiler_one_line_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []
    monkeypatch.setattr(build, "COMPILER", "no-such-compiler")
    assert build.built(str(tmp_path), lines.append) is None
    assert lines == [
        "small operations in plain torch: there is no no-such-compiler to compile the quicker ones"
    ]


@pytest.mark.parametrize(
    ("flags", "level"),
    [
        ("fpu avx2 fma f16c avx512f avx512bw avx512vl avx512dq", processor.AVX512),
        ("fpu avx2 fma f16c avx512f", processor.AVX2),
        ("fpu avx", processor.DEFAULT),
    ],
)
def test_a_processor_is_taken_for_what_it_has_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: str, level: processor.Capability
) -> None:
    description = tmp_path / "cpuinfo"
    description.write_text(f"processor\t: 0\nflags\t\t: {flags}\n\nprocessor\t: 1\nflags\t\t: fpu\n")
    monkeypatch.setattr(processor, "CPU_DESCRIPTION", description)
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    assert processor.capability() == level
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    assert processor.capability() == processor.DEFAULT
