"""What a bench says of its machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench import host

CORE = "model name\t: A Processor\nflags\t\t: fpu avx2 avx512f avx512_bf16 sse\n\n"


def test_machines_of_one_name_differ_by_their_vector_units(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    described = tmp_path / "cpuinfo"
    monkeypatch.setattr(host, "CPU_DESCRIPTION", described)
    assert host.vector_units() == ""
    described.write_text(CORE * 2)
    assert (host.processor(), host.vector_units()) == ("A Processor (2 cores)", "avx2 avx512f avx512_bf16")
