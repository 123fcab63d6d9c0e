"""A sentence encoder in memory: token ids in, unit vectors out.

Knows pooling, the text prefix that an encoder was trained with, and the tag that keeps vectors of two encoders
apart. Does not tokenise (the front does, with `prefix` before the text and special tokens on).
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from inference.models.errors import ModelNotUsable
from inference.models.fingerprint import fingerprint
from inference.models.loader import first_line, refuse_incomplete
from inference.models.precision import choose_device, choose_dtype

if TYPE_CHECKING:
    from transformers import PreTrainedModel

MAX_TOKENS = 512

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
        lengths = [len(ids) for ids in texts]
        if not lengths:
            return np.empty((0, self.dim), dtype=np.float32)
        if min(lengths) == 0 or max(lengths) > self.max_tokens:
            raise ValueError(
                f"a text has {min(lengths)} to {max(lengths)} tokens, allowed are 1 to {self.max_tokens}"
            )
        ids = torch.zeros((len(texts), max(lengths)), dtype=torch.long)
        mask = torch.zeros_like(ids)
        for row, text in enumerate(texts):
            ids[row, : len(text)] = torch.tensor(text)
            mask[row, : len(text)] = 1
        states = self._states(ids.to(self.device), mask.to(self.device))
        pooled = _pool(states.float(), mask.to(self.device), self.pooling)
        return nn.functional.normalize(pooled, dim=-1).cpu().numpy()

    def _states(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        embeddings = self.model.get_input_embeddings()(ids).to(self.dtype)
        states: torch.Tensor = self.model(inputs_embeds=embeddings, attention_mask=mask).last_hidden_state
        return states


def load_embedder(folder: Path, dtype: str = "auto", device: str = "auto") -> Embedder:
    """The sentence encoder of `folder`: any encoder of transformers whose pooling is mean, first or last token."""
    device = choose_device(device)
    torch_dtype = choose_dtype(dtype, device)
    pooling, prefix = _pooling(folder), _prefix(folder)
    model: Any = _load(folder, torch_dtype)
    return Embedder(
        model=model.to(device),
        dtype=torch_dtype,
        device=device,
        name=folder.name,
        tag=f"{folder.name}-{fingerprint(folder, pooling, prefix)[:12]}",
        prefix=prefix,
        pooling=pooling,
        dim=model.config.hidden_size,
        max_tokens=_max_tokens(folder, model),
    )


def _load(folder: Path, dtype: torch.dtype) -> PreTrainedModel:
    """The encoder in `dtype`, but its word table as stored: a lookup gains nothing from more bits, and the table
    is most of a multilingual encoder (fp16 instead of fp32 saves 192 MB for e5-small)."""
    from transformers import AutoModel
    from transformers.utils import logging

    logging.disable_progress_bar()
    verbosity = logging.get_verbosity()
    logging.set_verbosity_error()  # else it warns of the missing pooler, which nobody uses
    model: Any
    report: dict[str, Any]
    load: Any = AutoModel.from_pretrained  # what it returns depends on an argument
    try:
        model, report = load(
            folder,
            dtype="auto",
            use_safetensors=True,
            trust_remote_code=False,
            local_files_only=True,
            output_loading_info=True,
        )
    except (OSError, ValueError) as error:
        raise ModelNotUsable(f"{folder}: {first_line(error)}") from error
    finally:
        logging.set_verbosity(verbosity)
    refuse_incomplete(folder, report, optional_prefix="pooler.")
    words = model.get_input_embeddings()
    table, words.weight = words.weight, nn.Parameter(torch.empty(0), requires_grad=False)
    model.to(dtype)
    words.weight = table
    ready: PreTrainedModel = model.eval().requires_grad_(False)
    return ready


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
    for module in _read_json(folder / "modules.json") or []:
        kind = module["type"].rpartition(".")[2]
        if kind not in _PLAIN_MODULES:
            raise ModelNotUsable(f"{folder}: sentence encoders with a {kind} module are not served")
    fields = _read_json(folder / "1_Pooling" / "config.json") or {"pooling_mode_mean_tokens": True}
    chosen = [name for name, value in fields.items() if name.startswith("pooling_mode_") and value is True]
    pooling = fields.get("pooling_mode") or ",".join(name.split("_")[2] for name in chosen)
    if pooling not in _POOLINGS:
        raise ModelNotUsable(f"{folder}: the pooling {pooling!r} is not served (only {', '.join(_POOLINGS)})")
    return str(pooling)


def _prefix(folder: Path) -> str:
    """The prompt for queries. The e5 family needs one and its original folders do not say so."""
    fields = _read_json(folder / "config_sentence_transformers.json") or {}
    prompts = fields.get("prompts") or {}
    if prompts.get("query"):
        return str(prompts["query"])
    is_e5 = re.search(r"(^|[-_])e5([-_]|$)", folder.name.lower()) and "instruct" not in folder.name.lower()
    return "query: " if is_e5 else ""


def _max_tokens(folder: Path, model: PreTrainedModel) -> int:
    limits: list[int] = [MAX_TOKENS, model.config.max_position_embeddings]
    if "roberta" in model.config.model_type:
        limits.append(
            model.config.max_position_embeddings - model.config.pad_token_id - 1
        )  # positions start there
    fields = _read_json(folder / "sentence_bert_config.json") or {}
    if fields.get("max_seq_length"):
        limits.append(fields["max_seq_length"])
    return min(limits)


def _read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None
