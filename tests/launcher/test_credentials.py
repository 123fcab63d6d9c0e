"""Secrets that are made once."""

from __future__ import annotations

from pathlib import Path

from chatsite.launcher.credentials import kept_credential


def test_a_secret_is_made_once_and_kept(tmp_path: Path) -> None:
    first = kept_credential(tmp_path / "key")
    second = kept_credential(tmp_path / "key")
    assert first.is_new
    assert not second.is_new
    assert first.value == second.value
    assert len(first.value) >= 50


def test_only_the_owner_can_read_it(tmp_path: Path) -> None:
    credential = kept_credential(tmp_path / "key")
    assert credential.path.stat().st_mode & 0o777 == 0o600


def test_a_half_made_secret_is_made_anew(tmp_path: Path) -> None:
    (tmp_path / "key.partial").write_text("ha")
    assert kept_credential(tmp_path / "key").is_new
    assert [path.name for path in tmp_path.iterdir()] == ["key"]


def test_two_places_get_two_secrets(tmp_path: Path) -> None:
    assert kept_credential(tmp_path / "a").value != kept_credential(tmp_path / "b").value
