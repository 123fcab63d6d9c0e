"""The environment of a command that joins a site which is running in the same data folder.

`manage.py createkey` in a second terminal must find the embedded database without being told where its socket is.
Knows how the addresses follow from the lock's record; starts nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from chatsite.launcher.config import read_config
from chatsite.launcher.lock import running_holder
from chatsite.launcher.plan import Place, child_environment, service_steps
from chatsite.launcher.process import Identity


def joining_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """`environ` completed by what the running site's processes have; unchanged when none runs in DATA_DIR."""
    config = read_config(environ)
    holder = running_holder(config.data_path)
    if holder is None:
        return dict(environ)
    place = Place(config.data_path, Path(holder.runtime_dir), Identity.KEEP)
    _steps, addresses = service_steps(config, place)
    return child_environment(config, place, addresses, environ)
