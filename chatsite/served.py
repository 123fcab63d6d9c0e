"""What the engines serve: the models, and the one encoder. A snapshot; pure. Knows no address and no connection."""

from __future__ import annotations

from dataclasses import dataclass

from inference.types import EngineInfo


@dataclass(frozen=True, slots=True)
class Served:
    """What the engines said of themselves, in their order; `is_all` once each has said it, however long ago."""

    infos: tuple[EngineInfo, ...] = ()
    is_all: bool = False

    @property
    def models(self) -> tuple[EngineInfo, ...]:
        """Each model once: as the first of its engines serves it."""
        return tuple(info for info in self.infos if self.named(info.model) is info)

    @property
    def encoder(self) -> EngineInfo | None:
        """Whose vectors everybody gets: the first engine's that has an embedder, because those of two don't compare."""
        return next((info for info in self.infos if info.embedder), None)

    @property
    def embedder(self) -> str:
        return self.encoder.embedder if self.encoder else ""

    @property
    def verifier(self) -> EngineInfo | None:
        return next((info for info in self.infos if info.verifier), None)

    def named(self, model: str) -> EngineInfo | None:
        return next((info for info in self.infos if info.model == model), None)

    def chosen(self, model: str = "") -> EngineInfo | None:
        """The named model; the first one where none is named, or nobody serves it any more. None while that is unknown:
        an engine that never said anything may be the one."""
        found = self.named(model)
        if found is None and (self.is_all or not model) and self.infos:
            return self.infos[0]
        return found
