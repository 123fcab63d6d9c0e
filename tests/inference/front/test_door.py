"""Where an engine listens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from inference.config import EngineConfig
from inference.front.door import DoorError, open_door


def test_the_list_that_the_site_takes_is_no_place_to_listen(tmp_path: Path) -> None:
    server: Any = None
    with pytest.raises(DoorError, match="listens on one"):
        open_door(server, EngineConfig(address=f"unix:{tmp_path}/a,unix:{tmp_path}/b"))
    assert not [*tmp_path.iterdir()]
