"""With `-n`, what shares a site, an engine or an event loop runs in one worker, so that it starts once.

Those folders are one piece of work each (the browser's tests two), and the longest are begun first: none is left over
for one worker while the others have nothing to do. Everything else is dealt out by file. In every worker, tests in a
transaction still come before those that empty the tables. Knows no test. For `--dist loadscope`: the marks of
`loadgroup` are lost, because this xdist writes them where this pytest no longer looks.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from tests.plugins.tables import Tables, use_of_tables

# By what they take, the longest first.
WHOLE_FOLDERS = (
    "tests/e2e",
    "tests/inference/contract",
    "tests/site",
    "tests/v1",
    "tests/comply",
    "tests/chaos",
    "tests/grpc_door",
)
# Worth a second start of what it shares: as one piece it would take longer than all the others beside it.
HALVED_FOLDER = "tests/e2e"
# They empty the tables, too, so they wait for the tests in a transaction.
WHOLE_FOLDERS_THAT_EMPTY = ("tests/chat",)
# Single files of these take so long that none should be the last one left.
FOLDERS_OF_LONG_FILES = ("tests/bench", "tests/inference/exactness")


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None]:
    yield
    if hasattr(config, "workerinput"):
        items.sort(key=_stage)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Pieces | None:
    return Pieces(config, log) if config.getoption("dist") == "loadscope" else None


class Pieces(LoadScopeScheduling):
    """Deals out whole folders and files, in the order in which they were collected."""

    def __init__(self, config: pytest.Config, log: Any) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False
        self._piece_of: dict[str, str] = {}

    def add_node_collection(self, node: Any, collection: Sequence[str]) -> None:
        super().add_node_collection(node, collection)
        self._piece_of = pieces(collection)

    def _split_scope(self, nodeid: str) -> str:
        return self._piece_of[nodeid]


def pieces(collection: Sequence[str]) -> dict[str, str]:
    """The piece of work that each test belongs to. A file with tests of two stages is two pieces."""
    found, name, num_pieces = {}, "", 0
    second_half = _second_half([nodeid for nodeid in collection if _folder(nodeid) == HALVED_FOLDER])
    for nodeid in collection:
        file, folder = _file(nodeid), _folder(nodeid)
        whole = folder if folder in WHOLE_FOLDERS + WHOLE_FOLDERS_THAT_EMPTY else file
        if file in second_half:
            whole += ", second half"
        if whole != name:
            name, num_pieces = whole, num_pieces + 1
        found[nodeid] = f"{num_pieces}: {name}"
    return found


def _second_half(collection: Sequence[str]) -> set[str]:
    """The files that begin behind the middle of the tests."""
    files = [_file(nodeid) for nodeid in collection]
    return {file for file in files if files.index(file) >= len(files) / 2}


def _file(nodeid: str) -> str:
    return nodeid.split("::", 1)[0]


def _folder(nodeid: str) -> str:
    return _file(nodeid).rpartition("/")[0]


def _stage(item: pytest.Item) -> int:
    folder = _folder(item.nodeid)
    if folder in WHOLE_FOLDERS:
        return WHOLE_FOLDERS.index(folder)
    num_first = len(WHOLE_FOLDERS)
    if folder in WHOLE_FOLDERS_THAT_EMPTY:
        return num_first + 1
    if use_of_tables(item) is Tables.ROLLED_BACK:
        return num_first
    return num_first + (2 if folder in FOLDERS_OF_LONG_FILES else 3)
