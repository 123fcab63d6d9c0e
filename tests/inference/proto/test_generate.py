from __future__ import annotations

from pathlib import Path

import pytest

from chatsite.grpc_door.generate import SOURCE as CHAT
from inference.proto.generate import REPOSITORY, SOURCE, generate


@pytest.mark.parametrize("source", [SOURCE, CHAT])
def test_the_committed_code_is_what_the_compiler_makes(tmp_path: Path, source: str) -> None:
    for path in generate(tmp_path, source):
        assert path.read_text() == (REPOSITORY / path.relative_to(tmp_path)).read_text(), path.name
