"""As whom the database runs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from chatsite.launcher.errors import Unsuitable
from chatsite.launcher.identity import give_to_nobody, unprivileged_identity
from chatsite.launcher.process import Identity


async def test_an_ordinary_user_stays_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert await unprivileged_identity() is Identity.KEEP


def test_nobody_needs_folders_it_can_enter(tmp_path: Path) -> None:
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    (private / "postgres").mkdir()
    with pytest.raises(Unsuitable, match="DATABASE_URL"):
        give_to_nobody(Identity.NOBODY, private / "postgres")


@pytest.mark.parametrize("identity", [Identity.KEEP, Identity.NAMESPACE])
def test_other_identities_leave_the_owner_alone(identity: Identity, tmp_path: Path) -> None:
    give_to_nobody(identity, tmp_path)
    assert tmp_path.stat().st_uid == os.geteuid()
