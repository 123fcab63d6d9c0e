"""The core as the front starts it: a child process behind a socket."""

from __future__ import annotations

import gc
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from inference.config import EngineConfig
from inference.core.__main__ import openmp_environment, spare_the_collector
from inference.core.messages import (
    FRAME_HEADER,
    Command,
    CoreReady,
    EmbedTexts,
    FromCore,
    Inbox,
    LoadProgress,
    StepPack,
    pack,
    unpack_from_core,
)
from inference.core.pipe import FrontPipe, PipeClosed
from inference.models.tiny import write_tiny_embedder, write_tiny_model
from tests.inference.core.driver import admit
from tests.patience import PATIENCE_S

# Starts the core and then waits to be killed.
CHILD_OF_A_MORTAL = """
import subprocess, sys
fd, *arguments = sys.argv[1:]
core = subprocess.Popen([sys.executable, "-m", "inference.core", "--fd", fd, *arguments], pass_fds=[int(fd)])
core.wait()
"""


class Front:
    """The front's end of the pipe."""

    def __init__(self, connection: socket.socket) -> None:
        connection.settimeout(PATIENCE_S)
        self.connection = connection
        self.stream = connection.makefile("rb")

    def send(self, *commands: Command) -> None:
        self.connection.sendall(pack(Inbox(list(commands))))

    def hear(self) -> FromCore | None:
        header = self.stream.read(FRAME_HEADER.size)
        return unpack_from_core(self.stream.read(*FRAME_HEADER.unpack(header))) if header else None

    def close(self) -> None:
        self.stream.close()
        self.connection.close()


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    base = tmp_path_factory.mktemp("models")
    model, encoder = write_tiny_model(base / "tiny"), write_tiny_embedder(base / "encoder")
    return ["--model-folder", str(model), "--embed-folder", str(encoder), "--kv-memory-mb", "4"]


@pytest.fixture
def pair() -> Iterator[tuple[Front, socket.socket]]:
    ours, theirs = socket.socketpair()
    front = Front(ours)
    yield front, theirs
    front.close()
    theirs.close()


@contextmanager
def start(theirs: socket.socket, arguments: list[str]) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "inference.core", "--fd", str(theirs.fileno()), *arguments]
    with subprocess.Popen(command, pass_fds=[theirs.fileno()], stderr=subprocess.PIPE, text=True) as process:
        theirs.close()
        try:
            yield process
        finally:
            process.kill()  # a test that fails in the middle must not wait for it


def test_a_core_loads_answers_and_ends_with_its_pipe(
    pair: tuple[Front, socket.socket], folders: list[str]
) -> None:
    front, theirs = pair
    with start(theirs, folders) as process:
        said: list[FromCore] = []
        while not isinstance(message := front.hear(), CoreReady):
            assert isinstance(message, LoadProgress)
            said.append(message)
        assert said
        assert message.blocks_total * message.block_tokens * message.kv_bytes_per_token <= 4 * 1024 * 1024
        assert message.embedding_dim == 32
        request = admit([5, 6, 7], max_tokens=4)
        front.send(request, EmbedTexts("texts", [[4, 5, 6]]))
        packs = []
        while not packs or not packs[-1].finished:
            step = front.hear()
            assert isinstance(step, StepPack)
            packs.append(step)
        assert [len(step.tokens) for step in packs] == [0, 1, 1, 1, 1]
        assert packs[1].stats.steps == 1, "the warm-up is not counted"
        assert [[len(answer.vectors) for answer in step.embedded] for step in packs] == [
            [32 * 4],
            [],
            [],
            [],
            [],
        ]
        front.close()
        assert process.wait(PATIENCE_S) == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--model-folder", "/nonexistent", "--max-batch", "0"], "ENGINE_MAX_BATCH=0 is not allowed"),
        (["--model-folder", "/nonexistent"], "/nonexistent"),
    ],
)
def test_a_configuration_error_is_one_line_and_exit_code_78(pair, arguments: list[str], said: str) -> None:
    _, theirs = pair
    with start(theirs, arguments) as process:
        _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 78
    assert said in errors
    assert len(errors.splitlines()) == 1


def test_a_core_dies_with_the_process_that_started_it(
    pair: tuple[Front, socket.socket], folders: list[str]
) -> None:
    front, theirs = pair
    command = [sys.executable, "-c", CHILD_OF_A_MORTAL, str(theirs.fileno()), *folders]
    with subprocess.Popen(command, pass_fds=[theirs.fileno()]) as parent:
        theirs.close()
        assert front.hear() is not None  # it has started, and our end of its pipe stays open
        parent.kill()
    while front.hear() is not None:
        pass  # ends only when nobody holds the other end any more


def test_a_core_spins_only_where_it_outranks_its_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    monkeypatch.delenv("GOMP_SPINCOUNT", raising=False)
    ranks = {0: 0, os.getppid(): 0}
    monkeypatch.setattr(os, "getpriority", lambda which, who: ranks[who])
    assert openmp_environment(EngineConfig()) == {"OMP_WAIT_POLICY": "PASSIVE"}
    assert openmp_environment(EngineConfig(front_nice=5, threads=2)) == {
        "GOMP_SPINCOUNT": "10000",
        "OMP_NUM_THREADS": "2",
    }
    ranks[os.getppid()] = 10
    assert openmp_environment(EngineConfig()) == {"GOMP_SPINCOUNT": "10000"}


def test_collections_do_not_look_at_what_the_start_made() -> None:
    made = [[]]
    spare_the_collector()
    try:
        assert gc.get_freeze_count() > 1000
        assert not any(one is made for one in gc.get_objects())
    finally:
        gc.unfreeze()


def test_frames_may_arrive_in_any_pieces(pair: tuple[Front, socket.socket]) -> None:
    front, theirs = pair
    pipe = FrontPipe(theirs)
    requests = [admit([n]) for n in range(3)]
    frames = b"".join(pack(Inbox([request])) for request in requests)
    received: list[Command] = []
    for cut in range(len(frames)):
        front.connection.sendall(frames[cut : cut + 1])
        received += pipe.receive(timeout_s=0)
    assert received == requests
    assert pipe.receive(timeout_s=0) == []


@pytest.mark.parametrize("broken", [b"", b"\xff\xff\xff\xff"], ids=["closed", "oversized"])
def test_a_broken_pipe_ends_the_core(pair: tuple[Front, socket.socket], broken: bytes) -> None:
    front, theirs = pair
    front.connection.sendall(broken)
    front.close()
    with pytest.raises(PipeClosed):
        FrontPipe(theirs).receive(timeout_s=None)
        FrontPipe(theirs).receive(timeout_s=None)


def test_the_pure_parts_need_no_torch() -> None:
    modules = [
        "blocks",
        "conversations",
        "kv_cache",
        "policy",
        "prefix",
        "scheduler",
        "sequence",
        "lane",
        "messages",
        "pipe",
    ]
    code = f"import sys\nfor name in {modules}: __import__('inference.core.' + name)\nsys.exit('torch' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[3], check=False).returncode
        == 0
    )
