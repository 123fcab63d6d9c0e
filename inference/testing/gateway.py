"""The gateway core for the scripted engine: its tokenizer and its lane need no files. Started by the front.

Knows how they are put together; behaviour lies in `inference.gateway` and `inference.testing.upstream`.

    python -m inference.testing.gateway --fd N      (settings from the environment)
"""

from __future__ import annotations

import argparse
import sys

from inference import settings
from inference.config import EngineConfig
from inference.core.lane import LaneStep
from inference.core.messages import Embedded, EmbedTexts, Verified
from inference.gateway.core import run
from inference.gateway.lane import Request
from inference.gateway.start import LaneParts, Local
from inference.testing.embedding import DIM, TAG, embed_ids, similarity
from inference.testing.tokenizer import ByteTokenizer

MAX_CONTEXT = 8192


class ScriptedLane:
    """Satisfies `gateway.lane.Lane`."""

    def __init__(self) -> None:
        self._waiting: list[Request] = []

    @property
    def has_work(self) -> bool:
        return bool(self._waiting)

    def add(self, request: Request) -> None:
        self._waiting.append(request)

    def run_one(self) -> LaneStep:
        answers = LaneStep([], [], 0)
        for request in self._waiting:
            if isinstance(request, EmbedTexts):
                vectors = b"".join(embed_ids(ids) for ids in request.token_ids)
                answers.embedded.append(Embedded(request.id, DIM, vectors))
            else:
                answers.verified.append(Verified(request.id, [similarity(ids) for ids in request.token_ids]))
        self._waiting.clear()
        return answers


def scripted_local() -> Local:
    return Local(
        load_lane=lambda: LaneParts(
            ScriptedLane(), embedder=TAG, embedding_dim=DIM, supports_verify=True, verifier=TAG
        ),
        load_tokenizer=ByteTokenizer,
        max_context=MAX_CONTEXT,
    )


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="The scripted engine's gateway core; started by the front.")
    parser.add_argument("--fd", type=int, required=True)
    return run(settings.read(EngineConfig), parser.parse_args(argv).fd, scripted_local())


if __name__ == "__main__":
    sys.exit(main())
