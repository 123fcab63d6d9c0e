"""A sentence encoder in memory: token ids in, unit vectors out.

Knows pooling, the text prefix that an encoder was trained with, and the tag that keeps vectors of two encoders
apart. Does not tokenise (the front does, with `prefix` before the text and special tokens on).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from inference.models.encoder import load_encoder, longest_input, padded, read_json
from inference.models.errors import ModelNotUsable
from inference.models.fingerprint import fingerprint
from inference.models.precision import choose_device, choose_dtype

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_POOLINGS = ("mean", "cls", "lasttoken")
_PLAIN_MODULES = ("Transformer", "Pooling", "Normalize")


@dataclass(frozen=True, slots=True)
class Embedder:
    """One loaded encoder. `embed_ids` is the only thing it does."""

    model: PreTrainedModel
    dtype: torch.dtype
    device: str
    name: str
    tag: str  # name and fingerprint: vectors with another tag must never be compared with these
    prefix: str  # goes before every text
    pooling: str
    dim: int
    max_tokens: int

    @torch.inference_mode()
    def embed_ids(self, texts: Sequence[Sequence[int]]) -> np.ndarray:
        """(num_texts, dim) float32, each row of length 1; ids carry their special tokens, 1 to `max_tokens` of them."""
        if not texts:
            return np.empty((0, self.dim), dtype=np.float32)
        ids, mask = padded(texts, self.max_tokens, self.device)
        pooled = _pool(self._states(ids, mask).float(), mask, self.pooling)
        return nn.functional.normalize(pooled, dim=-1).cpu().numpy()

    def _states(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        embeddings = self.model.get_input_embeddings()(ids).to(self.dtype)
        states: torch.Tensor = self.model(inputs_embeds=embeddings, attention_mask=mask).last_hidden_state
        return states


def load_embedder(folder: Path, dtype: str = "auto", device: str = "auto") -> Embedder:
    """The sentence encoder of `folder`: any encoder of transformers whose pooling is mean, first or last token."""
    from transformers import AutoModel

    device = choose_device(device)
    torch_dtype = choose_dtype(dtype, device)
    pooling, prefix = _pooling(folder), _prefix(folder)
    # The pooler of a BERT is used by nobody here.
    model: Any = load_encoder(AutoModel, folder, torch_dtype, optional_prefix="pooler.")
    return Embedder(
        model=model.to(device),
        dtype=torch_dtype,
        device=device,
        name=folder.name,
        tag=f"{folder.name}-{fingerprint(folder, pooling, prefix)[:12]}",
        prefix=prefix,
        pooling=pooling,
        dim=model.config.hidden_size,
        max_tokens=longest_input(folder, model.config),
    )


def _pool(states: torch.Tensor, mask: torch.Tensor, pooling: str) -> torch.Tensor:
    """(num_texts, num_tokens, dim) and (num_texts, num_tokens) to (num_texts, dim)."""
    if pooling == "cls":
        return states[:, 0]
    lengths = mask.sum(dim=1)
    if pooling == "lasttoken":
        return states[torch.arange(len(states), device=states.device), lengths - 1]
    return (states * mask.unsqueeze(-1)).sum(dim=1) / lengths.unsqueeze(-1)


def _pooling(folder: Path) -> str:
    """What sentence-transformers wrote beside the model, or the mean where it wrote nothing."""
    for module in read_json(folder / "modules.json") or []:
        kind = module["type"].rpartition(".")[2]
        if kind not in _PLAIN_MODULES:
            raise ModelNotUsable(f"{folder}: sentence encoders with a {kind} module are not served")
    fields = read_json(folder / "1_Pooling" / "config.json") or {"pooling_mode_mean_tokens": True}
    chosen = [name for name, value in fields.items() if name.startswith("pooling_mode_") and value is True]
    pooling = fields.get("pooling_mode") or ",".join(name.split("_")[2] for name in chosen)
    if pooling not in _POOLINGS:
        raise ModelNotUsable(f"{folder}: the pooling {pooling!r} is not served (only {', '.join(_POOLINGS)})")
    return str(pooling)


def _prefix(folder: Path) -> str:
    """The prompt for queries. The e5 family needs one and its original folders do not say so."""
    fields = read_json(folder / "config_sentence_transformers.json") or {}
    prompts = fields.get("prompts") or {}
    if prompts.get("query"):
        return str(prompts["query"])
    is_e5 = re.search(r"(^|[-_])e5([-_]|$)", folder.name.lower()) and "instruct" not in folder.name.lower()
    return "query: " if is_e5 else ""
