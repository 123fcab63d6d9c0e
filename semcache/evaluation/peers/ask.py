"""Asks the peers the questions of a folder's jobs: `python -m semcache.evaluation.peers.ask FOLDER`.

A job N is `N.json` (stored and asked questions) with `N.stored.npy` and `N.asked.npy`, their vectors. In a job of pairs
each question is asked of a cache that holds its own partner and nothing else. The answer to all is `found.json`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from semcache.evaluation.peers.found import Found, Peer


def main(folder: Path) -> None:
    jobs = [json.loads((folder / f"{number}.json").read_text()) for number in range(_num_jobs(folder))]
    dimension = np.load(folder / "0.stored.npy").shape[1]
    found: dict[str, Any] = {}
    for peer in _peers(folder, dimension):
        answers = []
        for number, job in enumerate(jobs):
            print(f"{peer.name}: {job['name']}", file=sys.stderr)
            stored, asked = (np.load(folder / f"{number}.{side}.npy") for side in ("stored", "asked"))
            answers.append([asdict(one) for one in _answers(peer, job, stored, asked)])
        found[peer.name] = {"threshold": peer.threshold, "jobs": answers}
    (folder / "found.json").write_text(json.dumps(found))


def _peers(folder: Path, dimension: int) -> Iterator[Peer]:
    from semcache.evaluation.peers.gptcache_peer import GPTCachePeer
    from semcache.evaluation.peers.redisvl_peer import RedisVLPeer, server

    yield GPTCachePeer(folder, dimension)
    with server(folder) as url:
        yield RedisVLPeer(url, dimension)


def _answers(peer: Peer, job: dict[str, Any], stored: np.ndarray, asked: np.ndarray) -> Iterator[Found]:
    if not job["is_pairs"]:
        peer.fill(job["stored"], stored)
        yield from map(peer.ask, job["asked"], asked)
        return
    for place, text in enumerate(job["asked"]):
        peer.fill([job["stored"][place]], stored[place : place + 1])
        yield peer.ask(text, asked[place])


def _num_jobs(folder: Path) -> int:
    return len(list(folder.glob("*.stored.npy")))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
