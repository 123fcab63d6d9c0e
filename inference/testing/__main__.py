"""The scripted engine: the real front over a core that computes nothing. Starts at once, needs no model.

python -m inference.testing --address unix:/path/engine.sock [flags of `python -m inference`]
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys

from inference import settings
from inference.config import EngineConfig
from inference.front.serve import EXIT_CONFIG
from inference.gateway.address import check_upstream


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m inference.testing", description=__doc__.splitlines()[0])
    settings.add_flags(parser, EngineConfig)
    try:
        config = settings.read(EngineConfig, **vars(parser.parse_args(argv)))
        if config.upstream:
            check_upstream(config)
    except settings.SettingError as error:
        print(f"engine: error: {error}", file=sys.stderr, flush=True)
        return EXIT_CONFIG
    logging.basicConfig(level=logging.WARNING, format="engine: %(levelname)s %(message)s")
    from inference.testing.front import serve_scripted

    return asyncio.run(serve_scripted(config))


if __name__ == "__main__":
    sys.exit(main())
