"""The gateway core process: `python -m inference.gateway.core --fd N --model-folder DIR`, with the encoders' folders.

Started by the front in place of `inference.core`, with the same pipe. Knows folders and the process; the model's
weights are never read. The encoder of the lane is the only thing here that needs torch.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import socket
import sys
from pathlib import Path

from inference import settings
from inference.config import EngineConfig
from inference.core.__main__ import EXIT_CONFIGURATION, die_with_parent, openmp_environment
from inference.front.model_folder import FolderError, read_json, read_tokenizer
from inference.gateway.start import LaneParts, Local, serve
from inference.models.errors import ModelError


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m inference.gateway.core", description="The core in front of another engine."
    )
    parser.add_argument("--fd", type=int, required=True, help="connected stream socket to the front")
    parser.add_argument("--model-folder", type=Path, required=True)
    parser.add_argument("--embed-folder", type=Path, default=None)
    parser.add_argument("--verify-folder", type=Path, default=None)
    options = parser.parse_args(arguments)
    try:
        config = settings.read(EngineConfig)
        local = _local(config, options.model_folder, options.embed_folder, options.verify_folder)
        return run(config, options.fd, local)
    except (settings.SettingError, FolderError, ModelError) as error:
        print(f"gateway: {error}", file=sys.stderr, flush=True)
        return EXIT_CONFIGURATION


def run(config: EngineConfig, fd: int, local: Local) -> int:
    """Serves until the front ends; dies with it."""
    logging.basicConfig(level=logging.INFO, format="gateway: %(levelname)s %(message)s")
    die_with_parent()
    os.environ.update(openmp_environment(config))
    # Ctrl-C goes to the whole terminal group; the front decides when the core ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    asyncio.run(serve(config, socket.socket(fileno=fd), local))
    return 0


def _local(
    config: EngineConfig, model_folder: Path, embed_folder: Path | None, verify_folder: Path | None
) -> Local:
    return Local(
        load_lane=lambda: load_lane(config, embed_folder, verify_folder),
        load_tokenizer=lambda: read_tokenizer(model_folder),
        max_context=read_max_context(model_folder),
    )


def load_lane(config: EngineConfig, embed_folder: Path | None, verify_folder: Path | None) -> LaneParts:
    """Called in the lane's own thread: torch keeps its number of threads for each thread."""
    from inference.core.lane import Lane, LaneLimits

    if embed_folder is None and verify_folder is None:
        return LaneParts(Lane(LaneLimits.of(config)))
    import torch

    from inference.models.encoders import load_encoders

    torch.set_num_threads(config.threads or len(os.sched_getaffinity(0)))
    encoders = load_encoders(embed_folder, verify_folder, config.device)
    embedder, verifier = encoders.embedder, encoders.verifier
    lane = Lane(
        LaneLimits.of(config),
        embed=embedder.embed_ids if embedder else None,
        dim=embedder.dim if embedder else 0,
        verify=verifier.score_ids if verifier else None,
    )
    return LaneParts(
        lane,
        embedder=embedder.tag if embedder else "",
        embedding_dim=embedder.dim if embedder else 0,
        embed_prefix=embedder.prefix if embedder else "",
        embed_max_tokens=embedder.max_tokens if embedder else 0,
        supports_verify=verifier is not None,
        verifier=verifier.tag if verifier else "",
        verify_max_tokens=verifier.max_tokens if verifier else 0,
    )


def read_max_context(model_folder: Path) -> int | None:
    """Of config.json, for an upstream that does not tell its own. Raises FolderError."""
    fields = read_json(model_folder / "config.json")
    of_text = fields.get("text_config")
    longest = (of_text if isinstance(of_text, dict) else fields).get("max_position_embeddings")
    return longest if isinstance(longest, int) else None


if __name__ == "__main__":
    sys.exit(main())
