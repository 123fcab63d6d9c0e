"""What the front has to know of the served model: its tokenizer, template, defaults and the embedder's tokenizer.

Knows no weights. `front.model_folder` fills it from files, `inference.testing` from nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from inference.front.prompts import PromptBuilder
from inference.front.sampling import SamplingDefaults
from inference.front.tokenizer import Tokenizer

# (texts, prefix of every text, longest in tokens) -> ids with the encoder's own special tokens
EmbedIds = Callable[[Sequence[str], str, int], list[list[int]]]
# (pairs, longest in tokens) -> ids with the cross-encoder's own special tokens
PairIds = Callable[[Sequence[tuple[str, str]], int], list[list[int]]]


@dataclass(frozen=True, slots=True)
class ServedModel:
    """`embed_ids` and `pair_ids` are None where there is no embedding or verifier lane."""

    name: str
    tokenizer: Tokenizer
    prompts: PromptBuilder
    stop_ids: frozenset[int]
    template_fingerprint: str = ""
    defaults: SamplingDefaults = field(default_factory=SamplingDefaults)
    is_trial: bool = False
    embed_ids: EmbedIds | None = None
    pair_ids: PairIds | None = None
