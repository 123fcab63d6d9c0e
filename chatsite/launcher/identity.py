"""As whom a server runs that refuses root.

Knows the two ways out (a user namespace, the account `nobody`) and what the second one needs from the folders.
"""

from __future__ import annotations

import os
import pwd
from pathlib import Path

from chatsite.launcher.errors import Unsuitable
from chatsite.launcher.process import Command, Identity, run_to_end

MAY_ENTER = 0o001


async def unprivileged_identity() -> Identity:
    """Ordinary users stay themselves; root goes through a user namespace, or `nobody` where those are blocked."""
    if os.geteuid() != 0:
        return Identity.KEEP
    trial = Command(argv=("/bin/true",), identity=Identity.NAMESPACE)
    status, _ = await run_to_end(trial, on_line=lambda line: None)
    return Identity.NAMESPACE if status == 0 else Identity.NOBODY


def give_to_nobody(identity: Identity, folder: Path) -> None:
    """Make `folder` nobody's where the server will run as `nobody`; every folder above must let it pass."""
    if identity is not Identity.NOBODY:
        return
    for parent in folder.parents:
        if not parent.stat().st_mode & MAY_ENTER:
            raise Unsuitable(
                f"as root and without user namespaces the database runs as nobody, who cannot enter {parent}: "
                f"start as an ordinary user, set DATA_DIR elsewhere, or set DATABASE_URL"
            )
    account = pwd.getpwnam("nobody")
    os.chown(folder, account.pw_uid, account.pw_gid)
