"""The files of others under static/vendor are those that the manifest names, with their licences beside them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

VENDOR = Path(__file__).resolve().parents[2] / "static" / "vendor"
PACKAGES: list[dict[str, Any]] = json.loads((VENDOR / "manifest.json").read_text())["packages"]


def test_every_vendored_file_is_named_once() -> None:
    named = [name for package in PACKAGES for name in package["files"]]
    present = [
        str(p.relative_to(VENDOR)) for p in VENDOR.rglob("*") if p.is_file() and p.name != "manifest.json"
    ]
    assert sorted(named) == sorted(present)


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package["name"])
def test_vendored_files_are_unchanged(package: dict[str, Any]) -> None:
    for name, digest in package["files"].items():
        assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() == digest, name


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package["name"])
def test_every_package_says_where_it_is_from(package: dict[str, Any]) -> None:
    assert package["source"].startswith(f"npm:{package['name']}@{package['version']}")
    assert package["licence"]
    assert any(Path(name).name.startswith("LICENSE") for name in package["files"])
