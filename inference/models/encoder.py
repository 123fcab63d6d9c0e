"""What sentence encoders and cross-encoders have in common: loading, longest input, padding.

Knows transformers' encoder classes and the files beside their weights. Does not know what is made of their states
(`embedder`, `verifier`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError
from torch import nn

from inference.models.errors import ModelNotUsable
from inference.models.loader import first_line, refuse_incomplete

if TYPE_CHECKING:
    from transformers import PreTrainedModel

MAX_TOKENS = 512


def load_encoder(
    auto_class: Any, folder: Path, dtype: torch.dtype, optional_prefix: str | None = None
) -> PreTrainedModel:
    """The encoder in `dtype`, but its word table as stored: a lookup gains nothing from more bits, and the table
    is most of a multilingual encoder (fp16 instead of fp32 saves 192 MB for e5-small)."""
    from transformers.utils import logging

    logging.disable_progress_bar()
    verbosity = logging.get_verbosity()
    logging.set_verbosity_error()  # else it warns of weights that are not there; those that matter are refused below
    model: Any
    report: dict[str, Any]
    try:
        model, report = auto_class.from_pretrained(
            folder,
            dtype="auto",
            use_safetensors=True,
            trust_remote_code=False,
            local_files_only=True,
            output_loading_info=True,
        )
    except (OSError, ValueError, SafetensorError) as error:
        raise ModelNotUsable(f"{folder}: {first_line(error)}") from error
    finally:
        logging.set_verbosity(verbosity)
    refuse_incomplete(folder, report, optional_prefix)
    words = model.get_input_embeddings()
    table, words.weight = words.weight, nn.Parameter(torch.empty(0), requires_grad=False)
    model.to(dtype)
    words.weight = table
    ready: PreTrainedModel = model.eval().requires_grad_(False)
    return ready


def padded(texts: Sequence[Sequence[int]], max_tokens: int, device: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids and their mask, both (num_texts, longest). Raises ValueError for a text that is empty or too long."""
    lengths = [len(ids) for ids in texts]
    if min(lengths) == 0 or max(lengths) > max_tokens:
        raise ValueError(f"a text has {min(lengths)} to {max(lengths)} tokens, allowed are 1 to {max_tokens}")
    ids = torch.zeros((len(texts), max(lengths)), dtype=torch.long)
    mask = torch.zeros_like(ids)
    for row, text in enumerate(texts):
        ids[row, : len(text)] = torch.tensor(text)
        mask[row, : len(text)] = 1
    return ids.to(device), mask.to(device)


def longest_input(folder: Path, config: Any) -> int:
    """Tokens, special ones included."""
    limits: list[int] = [MAX_TOKENS, config.max_position_embeddings]
    if "roberta" in config.model_type:
        limits.append(config.max_position_embeddings - config.pad_token_id - 1)  # positions start there
    fields = read_json(folder / "sentence_bert_config.json") or {}
    if fields.get("max_seq_length"):
        limits.append(fields["max_seq_length"])
    return min(limits)


def read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None
