"""The engine: `python -m inference [flags]` serves one model until it is told to stop.

Knows the order: settings, model folders, front with its core. Exit code 78 means that starting again does not help.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
from dataclasses import replace
from pathlib import Path

from inference import settings
from inference.config import EngineConfig
from inference.front.core_process import EXIT_CONFIG, as_process
from inference.front.engine import Engine
from inference.front.heap import give_back_freed
from inference.front.launch import CoreCommand, launch
from inference.front.model_folder import FolderError, read_model_folder
from inference.front.ownership import new_secret, secret_id
from inference.front.serve import serve
from inference.front.shared_prefixes import SharedPrefixesError, read_shared_prefixes
from inference.front.spawner import Spawner
from inference.gateway.address import check_upstream
from inference.models.errors import ModelError
from inference.models.resolve import resolve, resolve_verifier

TRIAL_PREFIX = "package:"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m inference", description="Serves one model over gRPC.")
    logging.basicConfig(level=logging.INFO, format="engine: %(levelname)s %(message)s")
    try:
        settings.add_flags(parser, EngineConfig)
        config = settings.read(EngineConfig, **vars(parser.parse_args(argv)))
        if config.upstream:
            check_upstream(config)
        config = replace(config, salt_key=config.salt_key or new_secret())  # for every core of this engine
    except settings.SettingError as error:
        return _fail(str(error), EXIT_CONFIG)
    spawner = Spawner(config.front_nice)
    try:
        folder = resolve(config.model, config.data_dir, say)
        embed_folder = resolve(config.embed_model, config.data_dir, say) if config.embed_model else None
        verify_folder = resolve_verifier(config.verify_model, config.embed_model, config.data_dir, say)
    except ModelError as error:
        return _fail(str(error), error.exit_code)
    command = core_command(config, folder, embed_folder, verify_folder)
    first = launch(command, spawner)  # it loads the weights while we read tokenizers, which takes as long
    is_trial = config.model.startswith(TRIAL_PREFIX) and not config.upstream
    try:
        model = read_model_folder(
            folder, embed_folder, verify_folder, name=config.served_model_name, is_trial=is_trial
        )
        shared_prefixes = read_shared_prefixes(config.shared_prefixes, model.prompts)
    except (FolderError, SharedPrefixesError) as error:
        first.result().kill()
        return _fail(str(error), EXIT_CONFIG)
    give_back_freed()
    connect = as_process(command, step_timeout_s=config.step_timeout_s, spawner=spawner, first=first)

    async def run() -> int:
        return await serve(Engine(config, model, connect, shared_prefixes=shared_prefixes), say=say)

    return asyncio.run(run())


def core_command(
    config: EngineConfig, folder: Path, embed_folder: Path | None, verify_folder: Path | None
) -> CoreCommand:
    """The core reads the same settings from its environment; the secrets of the door stay with the front."""
    module = "inference.gateway.core" if config.upstream else "inference.core"
    argv = [sys.executable, "-m", module, "--model-folder", str(folder)]
    if not config.upstream:
        argv += ["--salt-id", secret_id(config.salt_key)]
    if embed_folder is not None:
        argv += ["--embed-folder", str(embed_folder)]
    if verify_folder is not None:
        argv += ["--verify-folder", str(verify_folder)]
    return CoreCommand(argv, settings.to_environ(config, "upstream_key"))


def say(line: str) -> None:
    print(f"engine: {line}", flush=True)


def _fail(line: str, status: int) -> int:
    print(f"engine: error: {line}", file=sys.stderr, flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
