"""What passes between the project and its peers. Standard library only: both environments read it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

Vector = Sequence[float]


@dataclass(frozen=True, slots=True)
class Found:
    """The nearest stored question: its place, how near by the peer's own measure, and whether the peer as shipped
    serves its answer. All empty where the peer returned nothing."""

    place: int | None = None
    similarity: float | None = None
    is_served: bool = False


class Peer(Protocol):
    """A semantic cache. `threshold` is what it ships with, in the measure of `Found.similarity`."""

    name: str
    threshold: float

    def fill(self, texts: Sequence[str], vectors: Iterable[Vector]) -> None:
        """Store these questions and nothing else; the answer of each is its place."""

    def ask(self, text: str, vector: Vector) -> Found: ...
