"""The embedding lane: texts of all callers in micro-batches, one per step of the loop.

Knows jobs, length order and the tokens it spent. Does not know the encoder beyond one call: token ids in,
vectors out.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from inference.core.messages import Embedded, EmbedTexts

# (texts as token ids) -> (num_texts, dim) float32, L2-normalised
Encode = Callable[[list[list[int]]], np.ndarray]

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Job:
    request: EmbedTexts
    vectors: dict[int, np.ndarray] = field(default_factory=dict)
    error: str = ""

    @property
    def is_done(self) -> bool:
        return bool(self.error) or len(self.vectors) == len(self.request.token_ids)


@dataclass(frozen=True, slots=True)
class _Text:
    job: _Job
    index: int

    @property
    def token_ids(self) -> list[int]:
        return self.job.request.token_ids[self.index]


@dataclass(frozen=True, slots=True)
class LaneStep:
    """What one micro-batch did."""

    embedded: list[Embedded]
    spent_tokens: int  # padding included


class EmbeddingLane:
    """Waiting texts; the oldest is always in the next micro-batch, with others of like length."""

    def __init__(self, encode: Encode | None, dim: int, max_batch: int) -> None:
        self.num_embedded = 0
        self._encode = encode
        self._dim = dim
        self._max_batch = max_batch
        self._waiting: list[_Text] = []
        self._answered: list[Embedded] = []  # answers that need no encoder

    @property
    def has_work(self) -> bool:
        return bool(self._waiting or self._answered)

    def add(self, request: EmbedTexts) -> None:
        job = _Job(request)
        if self._encode is None:
            job.error = "this engine serves no sentence encoder"
        if job.is_done:
            self._answered.append(self._answer(job))
        else:
            self._waiting.extend(_Text(job, index) for index in range(len(request.token_ids)))

    def run_one(self) -> LaneStep:
        """Encode one micro-batch, if any text waits."""
        answered, self._answered = self._answered, []
        texts = self._next_texts()
        if not texts or self._encode is None:
            return LaneStep(answered, 0)
        try:
            vectors = self._encode([text.token_ids for text in texts])
        except Exception as error:  # a broken text fails alone: the others are tried again one by one
            return LaneStep(
                [*answered, *self._one_by_one(texts, error)], sum(len(t.token_ids) for t in texts)
            )
        spent = len(texts) * max(len(text.token_ids) for text in texts)
        return LaneStep([*answered, *self._store(texts, vectors)], spent)

    def _next_texts(self) -> list[_Text]:
        if not self._waiting:
            return []
        oldest = self._waiting[0]
        nearest = sorted(self._waiting, key=lambda text: abs(len(text.token_ids) - len(oldest.token_ids)))
        return nearest[: self._max_batch]

    def _one_by_one(self, texts: list[_Text], error: Exception) -> list[Embedded]:
        answers = []
        for text in texts:
            if text.job.error:
                continue
            try:
                assert self._encode is not None
                answers += self._store([text], self._encode([text.token_ids]))
            except Exception as cause:
                log.error("a text cannot be embedded: %s (the batch failed with: %s)", cause, error)
                text.job.error = str(cause)
                self._waiting = [other for other in self._waiting if other.job is not text.job]
                answers.append(self._answer(text.job))
        return answers

    def _store(self, texts: list[_Text], vectors: np.ndarray) -> list[Embedded]:
        for text, vector in zip(texts, vectors, strict=True):
            text.job.vectors[text.index] = vector
        self.num_embedded += len(texts)
        stored = {(id(text.job), text.index) for text in texts}
        self._waiting = [t for t in self._waiting if (id(t.job), t.index) not in stored]
        jobs = {id(text.job): text.job for text in texts}
        return [self._answer(job) for job in jobs.values() if job.is_done]

    def _answer(self, job: _Job) -> Embedded:
        if job.error:
            return Embedded(id=job.request.id, dim=self._dim, vectors=b"", error=job.error)
        rows = [job.vectors[index] for index in range(len(job.request.token_ids))]
        packed = np.asarray(rows, dtype="<f4").tobytes()
        return Embedded(id=job.request.id, dim=self._dim, vectors=packed)
