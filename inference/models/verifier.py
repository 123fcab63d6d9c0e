"""A cross-encoder in memory: pairs of texts go in as token ids, and scores come out; 1 means the same.

Knows BERT-like sequence classification with one label (a sigmoid) or two (the probability of "same"), and adapters
over the sentence encoder that is loaded anyway (`adapter`). Does not know how pairs are tokenised
(`front.encoder_tokenizer`) or who asks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from inference.models.adapter import load_adapter
from inference.models.adapter_config import is_adapter, read_adapter_config
from inference.models.embedder import Embedder
from inference.models.encoder import load_encoder, longest_input, padded
from inference.models.errors import ModelNotUsable
from inference.models.fingerprint import fingerprint
from inference.models.loader import read_config
from inference.models.precision import choose_device, choose_dtype

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

# How models for paraphrases, duplicates and entailment call the label that is not "same".
_OTHER_LABEL = re.compile(r"not|non|no\b|un|dis|diff|neg|contra|false|0\b")


@dataclass(frozen=True, slots=True)
class Verifier:
    """One loaded cross-encoder. `score_ids` is the only thing it does."""

    model: Any  # a classifier of transformers, or a CrossEncoder
    dtype: torch.dtype
    device: str
    tag: str  # name and fingerprint: scores with another tag must never be compared with these
    max_tokens: int
    same_label: int | None  # None: one label only
    separator: int | None  # ends the first text of a pair; None where the two have no types of their own

    @torch.inference_mode()
    def score_ids(self, pairs: Sequence[Sequence[int]]) -> np.ndarray:
        """(num_pairs,) float32 in [0, 1]; ids carry their special tokens, 1 to `max_tokens` of them."""
        if not pairs:
            return np.empty(0, dtype=np.float32)
        ids, mask = padded(pairs, self.max_tokens, self.device)
        inputs = {"attention_mask": mask}
        if self.separator is not None:
            inputs["token_type_ids"] = _types(ids, self.separator) * mask
        embeddings = self.model.get_input_embeddings()(ids).to(self.dtype)
        logits = self.model(inputs_embeds=embeddings, **inputs).logits.float()
        return self._scores(logits).cpu().numpy()

    def _scores(self, logits: torch.Tensor) -> torch.Tensor:
        if self.same_label is None:
            return logits[:, 0].sigmoid()
        return logits.softmax(-1)[:, self.same_label]


def load_verifier(
    folder: Path, dtype: str = "auto", device: str = "auto", embedder: Embedder | None = None
) -> Verifier:
    """The cross-encoder of `folder`. Raises ModelNotUsable with one line for any other model.

    `embedder` is the one that adapters share their weights with; its dtype and device are then theirs.
    """
    from transformers import AutoModelForSequenceClassification

    if is_adapter(folder):
        return _over(embedder, folder)

    device = choose_device(device)
    torch_dtype = choose_dtype(dtype, device)
    config = _read_encoder_config(folder)
    model: Any = load_encoder(AutoModelForSequenceClassification, folder, torch_dtype)
    names: Any = config.id2label
    return Verifier(
        model=model.to(device),
        dtype=torch_dtype,
        device=device,
        tag=f"{folder.name}-{fingerprint(folder, 'verifier')[:12]}",
        max_tokens=longest_input(folder, config),
        same_label=None if config.num_labels == 1 else _same_label([names[0], names[1]]),
        separator=_separator(folder) if getattr(config, "type_vocab_size", 0) > 1 else None,
    )


def _over(embedder: Embedder | None, folder: Path) -> Verifier:
    config = read_adapter_config(folder)
    if embedder is None:
        raise ModelNotUsable(f"{folder} holds adapters of {config.base}: set EMBED_MODEL to that encoder")
    return Verifier(
        model=load_adapter(embedder.model, folder, config),
        dtype=embedder.dtype,
        device=embedder.device,
        tag=f"{folder.name}-{fingerprint(folder, 'verifier', embedder.tag)[:12]}",
        max_tokens=embedder.max_tokens,
        same_label=None,
        separator=config.separator,
    )


def _read_encoder_config(folder: Path) -> PreTrainedConfig:
    from transformers import MODEL_FOR_MASKED_LM_MAPPING

    config = read_config(folder)
    if type(config) not in MODEL_FOR_MASKED_LM_MAPPING:
        raise ModelNotUsable(
            f"{folder}: {config.model_type} models are no encoders; a verifier is a BERT-like cross-encoder"
        )
    if config.num_labels not in (1, 2):
        raise ModelNotUsable(f"{folder}: a verifier has 1 or 2 labels, this model has {config.num_labels}")
    return config


def _same_label(names: Sequence[str]) -> int:
    """The second of two, as trainers have it, unless the names say otherwise."""
    is_other = [bool(_OTHER_LABEL.match(name.lower())) for name in names]
    return 0 if is_other == [False, True] else 1


def _separator(folder: Path) -> int:
    """The last special token that the folder's tokenizer counts to the first text of a pair."""
    from tokenizers import Tokenizer

    file = folder / "tokenizer.json"
    if not file.is_file():
        raise ModelNotUsable(f"{file} is missing")
    encoding = Tokenizer.from_file(str(file)).encode("a", "a")
    ends = [token for token, kind in zip(encoding.ids, encoding.type_ids, strict=True) if kind == 0]
    if 1 not in encoding.type_ids or not encoding.special_tokens_mask[len(ends) - 1]:
        raise ModelNotUsable(f"{folder}: its tokenizer does not tell the two texts of a pair apart")
    return int(ends[-1])


def _types(ids: torch.Tensor, separator: int) -> torch.Tensor:
    """1 behind the first separator of each row. No text holds one: its control tokens are text."""
    is_separator = (ids == separator).long()
    return (is_separator.cumsum(-1) - is_separator).clamp_(max=1)
