"""The encoders of the lane, loaded to be served: a sentence encoder, a cross-encoder, or both over the same weights.

Knows which is loaded first and when layers are exchanged: adapters are made from the encoder's own layers, so not
before both are here. Who trains loads them with `embedder` and `verifier` alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from inference.models.embedder import Embedder, load_embedder
from inference.models.lean_layers import make_lean
from inference.models.verifier import Verifier, load_verifier


@dataclass(frozen=True, slots=True)
class Encoders:
    """Either is None where there is none."""

    embedder: Embedder | None
    verifier: Verifier | None


def load_encoders(
    embed_folder: Path | None,
    verify_folder: Path | None,
    device: str,
    say: Callable[[str], None] = lambda line: None,
) -> Encoders:
    """`say` hears one line before each is loaded. Raises ModelNotUsable."""
    embedder = verifier = None
    if embed_folder is not None:
        say(f"loading {embed_folder.name}")
        embedder = load_embedder(embed_folder, device=device)
    if verify_folder is not None:
        say(f"loading {verify_folder.name}")
        verifier = load_verifier(verify_folder, device=device, embedder=embedder)
    make_lean(*(encoder.model for encoder in (embedder, verifier) if encoder is not None))
    return Encoders(embedder, verifier)
