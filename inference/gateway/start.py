"""From settings and folders to a gateway loop that runs until the front ends.

Knows the order: the lane's encoder, then the upstream, for which it waits as long as it takes. Does not know the
process (`core`) or which lane it is given.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

from inference.config import EngineConfig
from inference.core.messages import CoreReady, LoadProgress
from inference.core.pipe import PipeClosed
from inference.front.tokenizer import Tokenizer
from inference.gateway.address import parse_address
from inference.gateway.completion import Completions
from inference.gateway.dialect import Served, describe, learn
from inference.gateway.errors import UpstreamError
from inference.gateway.lane import Lane
from inference.gateway.loop import GatewayLoop, Parts
from inference.gateway.metrics import Scrape, read
from inference.gateway.pipe import AsyncFrontPipe
from inference.gateway.upstream import Upstream
from inference.models.errors import ModelNotUsable

log = logging.getLogger(__name__)

FIRST_RETRY_S, MAX_RETRY_S = 0.25, 5.0
# A token of the lowest priority may wait long behind others; an upstream that answers never is asked anew.
PROBE_TIMEOUT_S = 120.0
NOWHERE = "upstream"  # device and precision: the API does not tell them


@dataclass(frozen=True, slots=True)
class LaneParts:
    """A lane, and what the front has to know of its encoder."""

    lane: Lane
    embedder: str = ""
    embedding_dim: int = 0
    embed_prefix: str = ""
    embed_max_tokens: int = 0
    supports_verify: bool = False
    verifier: str = ""
    verify_max_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Local:
    """What is known here: the lane (loaded in its own thread), the tokenizer, the longest context (None: unknown)."""

    load_lane: Callable[[], LaneParts]
    load_tokenizer: Callable[[], Tokenizer]
    max_context: int | None


async def serve(config: EngineConfig, connection: socket.socket, local: Local) -> None:
    """Returns when the front has closed the pipe. Raises ModelError for what cannot be loaded or served."""
    pipe = await AsyncFrontPipe.over(connection)
    upstream = Upstream(parse_address(config.upstream), config.upstream_key, config.max_batch)
    load_tokenizer = cache(local.load_tokenizer)
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="lane") as lane_thread, suppress(PipeClosed):
        try:
            loop = asyncio.get_running_loop()
            lane = await loop.run_in_executor(lane_thread, local.load_lane)
            served = await _wait_for(upstream, config.upstream_model, load_tokenizer, pipe)
            log.info("%s serves %s", upstream.address.shown, describe(served.dialect))
            parts = Parts(
                Completions(upstream, served.dialect, load_tokenizer, config.upstream_session_header),
                lane.lane,
                lane_thread,
                config.max_batch,
                config.step_timeout_s,
            )
            await GatewayLoop(pipe, parts).run(_ready(served, lane, local, await _scrape(upstream)))
        finally:
            pipe.close()
            await upstream.close()


async def _wait_for(
    upstream: Upstream, model: str, load_tokenizer: Callable[[], Tokenizer], pipe: AsyncFrontPipe
) -> Served:
    """Asks until the upstream made a token; the front hears each time why not. Raises PipeClosed."""
    retry_s = FIRST_RETRY_S
    while True:
        await pipe.send(LoadProgress(f"waiting for a token of the upstream {upstream.address.shown}"))
        try:
            async with asyncio.timeout(PROBE_TIMEOUT_S):
                return await learn(upstream, model, load_tokenizer)
        except UpstreamError as error:
            await pipe.send(LoadProgress(str(error.args[0])))
        except TimeoutError:
            await pipe.send(LoadProgress(f"no token of the upstream within {PROBE_TIMEOUT_S:.0f} s"))
        await asyncio.sleep(retry_s)
        retry_s = min(2 * retry_s, MAX_RETRY_S)


async def _scrape(upstream: Upstream) -> Scrape:
    try:
        return read(await upstream.metrics())
    except (UpstreamError, ValueError):
        return Scrape()


def _ready(served: Served, lane: LaneParts, local: Local, scrape: Scrape) -> CoreReady:
    max_context = served.max_context or local.max_context
    if max_context is None:
        raise ModelNotUsable("neither the upstream nor the config.json of MODEL tells the longest context")
    return CoreReady(
        revision=served.revision,
        max_context=max_context,
        dtype=NOWHERE,
        device=NOWHERE,
        kv_bytes_per_token=0,
        block_tokens=scrape.block_tokens,
        blocks_total=scrape.blocks_total,
        embedder=lane.embedder,
        embedding_dim=lane.embedding_dim,
        embed_prefix=lane.embed_prefix,
        embed_max_tokens=lane.embed_max_tokens,
        supports_verify=lane.supports_verify,
        verifier=lane.verifier,
        verify_max_tokens=lane.verify_max_tokens,
        has_grammar=served.dialect.holds_grammars,
    )
