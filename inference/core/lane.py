"""The lane: texts to embed and pairs to verify, of all callers, in micro-batches beside the answers.

Knows jobs, whose turn it is and the tokens it spent. At most one micro-batch runs in a step; texts that arrived during
the step before are its company. Does not know the encoders beyond one call each: token ids in, one row of numbers per
text out.
"""

from __future__ import annotations

import itertools
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from inference.config import EngineConfig
from inference.core.length_groups import BatchBounds, LengthGroups
from inference.core.messages import Embedded, EmbedTexts, Verified, VerifyPairs

# (texts as token ids) -> one float32 row per text: a vector of length 1 (num_texts, dim), or a score (num_texts,)
Encode = Callable[[list[list[int]]], np.ndarray]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LaneLimits:
    """Bounds of one micro-batch."""

    max_batch: int
    max_tokens: int  # padding included

    @classmethod
    def of(cls, config: EngineConfig) -> LaneLimits:
        return cls(config.embed_batch, config.lane_tokens)


@dataclass(slots=True)
class _Job:
    """One request; its texts may be spread over many micro-batches."""

    id: str
    token_ids: list[list[int]]
    rows: dict[int, np.ndarray] = field(default_factory=dict)
    error: str = ""

    @property
    def is_done(self) -> bool:
        return bool(self.error) or len(self.rows) == len(self.token_ids)

    def ordered_rows(self) -> list[np.ndarray]:
        return [self.rows[index] for index in range(len(self.token_ids))]


@dataclass(frozen=True, slots=True)
class _Text:
    job: _Job
    index: int
    number: int

    @property
    def token_ids(self) -> list[int]:
        return self.job.token_ids[self.index]

    @property
    def num_tokens(self) -> int:
        return len(self.token_ids)


class _Queue:
    """The texts of one encoder. A micro-batch that fails is tried again text by text: a broken one fails alone."""

    def __init__(self, encode: Encode | None, name: str) -> None:
        self.num_done = 0  # texts
        self.ended: list[_Job] = []
        self._encode = encode
        self._name = name
        self._groups: LengthGroups[_Text] = LengthGroups()
        self._suspects: deque[_Text] = deque()
        self._numbers = itertools.count()

    @property
    def is_waiting(self) -> bool:
        return bool(self._groups or self._suspects)

    def add(self, job: _Job) -> None:
        if self._encode is None:
            job.error = f"this engine serves no {self._name}"
        elif not all(job.token_ids):
            job.error = f"the {self._name} cannot read a text without tokens"
        if job.is_done:
            self.ended.append(job)
            return
        for index in range(len(job.token_ids)):
            self._groups.add(_Text(job, index, next(self._numbers)))

    def run(self, bounds: BatchBounds) -> int:
        """Encode one micro-batch; gives the tokens it took, padding included."""
        texts = [self._suspects.popleft()] if self._suspects else self._groups.take(bounds)
        try:
            assert self._encode is not None, "texts wait only where there is an encoder"
            rows = self._encode([text.token_ids for text in texts])
            if len(rows) != len(texts) or not np.isfinite(rows).all():
                raise ArithmeticError("its output has holes: NaN, infinity or too few rows")
        except Exception as error:
            self._suspect(texts, error)
        else:
            self._store(texts, rows)
        return len(texts) * max(text.num_tokens for text in texts)

    def _suspect(self, texts: list[_Text], error: Exception) -> None:
        if len(texts) > 1:
            log.error("the %s failed with %d texts, trying each alone: %s", self._name, len(texts), error)
            self._suspects.extend(texts)
            return
        job = texts[0].job
        log.error("the %s cannot read a text: %s", self._name, error)
        job.error = f"the {self._name} failed: {error}"
        self.ended.append(job)
        self._groups.discard(lambda text: text.job is job)
        self._suspects = deque(text for text in self._suspects if text.job is not job)

    def _store(self, texts: list[_Text], rows: np.ndarray) -> None:
        self.num_done += len(texts)
        for text, row in zip(texts, rows, strict=True):
            text.job.rows[text.index] = row
            if text.job.is_done:
                self.ended.append(text.job)


@dataclass(frozen=True, slots=True)
class LaneStep:
    """What one step of the lane did."""

    embedded: list[Embedded]
    verified: list[Verified]
    spent_tokens: int  # padding included


class Lane:
    """Both encoders take turns; one that is None answers every request with an error."""

    def __init__(
        self,
        limits: LaneLimits,
        *,
        embed: Encode | None = None,
        dim: int = 0,
        verify: Encode | None = None,
    ) -> None:
        self.num_batches = 0
        self._limits = limits
        self._dim = dim
        self._embedding = _Queue(embed, "sentence encoder")
        self._verifying = _Queue(verify, "verifier")
        self._turns = deque([self._embedding, self._verifying])

    @property
    def has_work(self) -> bool:
        return any(queue.is_waiting or queue.ended for queue in self._turns)

    @property
    def num_embedded(self) -> int:
        return self._embedding.num_done

    @property
    def num_verified(self) -> int:
        return self._verifying.num_done

    def add(self, request: EmbedTexts | VerifyPairs) -> None:
        queue = self._embedding if isinstance(request, EmbedTexts) else self._verifying
        queue.add(_Job(request.id, request.token_ids))

    def run_one(self, busy_tokens: int | None = None) -> LaneStep:
        """At most one micro-batch. `busy_tokens`: sequences run, and the step has no more tokens than these for it."""
        most = self._limits.max_tokens
        bounds = BatchBounds(self._limits.max_batch, most if busy_tokens is None else min(most, busy_tokens))
        spent_tokens = 0
        queue = next((queue for queue in self._turns if queue.is_waiting), None)
        if queue is not None:
            spent_tokens = queue.run(bounds)
            self.num_batches += 1
            self._turns.remove(queue)
            self._turns.append(queue)
        return LaneStep(self._take_embedded(), self._take_verified(), spent_tokens)

    def reset_counts(self) -> None:
        self.num_batches = self._embedding.num_done = self._verifying.num_done = 0

    def _take_embedded(self) -> list[Embedded]:
        ended, self._embedding.ended = self._embedding.ended, []
        return [
            Embedded(job.id, self._dim, b"", job.error)
            if job.error
            else Embedded(job.id, self._dim, np.asarray(job.ordered_rows(), dtype="<f4").tobytes())
            for job in ended
        ]

    def _take_verified(self) -> list[Verified]:
        ended, self._verifying.ended = self._verifying.ended, []
        return [
            Verified(job.id, [], job.error)
            if job.error
            else Verified(job.id, [float(row) for row in job.ordered_rows()])
            for job in ended
        ]
