from __future__ import annotations

from pathlib import Path

from inference.proto.generate import GENERATED, REPOSITORY, generate


def test_the_committed_code_is_what_the_compiler_makes(tmp_path: Path) -> None:
    made = generate(tmp_path)
    assert [path.name for path in made] == list(GENERATED)
    for path in made:
        assert path.read_text() == (REPOSITORY / "inference" / "proto" / path.name).read_text(), path.name
