"""A cross-encoder around a sentence encoder that is loaded anyway: upper layers and a head of its own, all else shared.

Knows which tensors a verifier has of its own and how they are kept in a file. Does not know how they are trained
(`inference.verifier`) nor who asks for scores (`verifier`). The word table and the lower layers stay the encoder's: its
vectors never change, and no second copy is made.
"""

from __future__ import annotations

import copy
import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import nn

from inference.models.adapter_config import WEIGHTS_NAME, AdapterConfig
from inference.models.errors import ModelNotUsable
from inference.models.loader import first_line

if TYPE_CHECKING:
    from transformers import PreTrainedModel


_LAYER = re.compile(r"\.layer\.(\d+)\.")


@dataclass(frozen=True, slots=True)
class Scored:
    logits: torch.Tensor  # (num_pairs, 1); above 0 means the same


class CrossEncoder(nn.Module):
    """Reads a pair with the encoder's layers and judges by the state of its first token."""

    def __init__(self, encoder: PreTrainedModel, num_layers: int) -> None:
        """The uppermost `num_layers` become its own; they start as copies."""
        super().__init__()
        self.encoder: Any = _sharing_copy(encoder)
        _own_layers(self.encoder, num_layers)
        width = encoder.config.hidden_size
        self.dense = nn.Linear(width, width)
        self.score = nn.Linear(width, 1)

    def get_input_embeddings(self) -> nn.Module:
        words: nn.Module = self.encoder.get_input_embeddings()
        return words

    def forward(self, **inputs: torch.Tensor) -> Scored:
        first = self.encoder(**inputs).last_hidden_state[:, 0]
        return Scored(self.score(torch.tanh(self.dense(first))))

    def own_parameters(self) -> dict[str, nn.Parameter]:
        """What is trained and shipped; everything else belongs to the encoder."""
        return {name: weight for name, weight in self.named_parameters() if weight.requires_grad}


def load_adapter(encoder: PreTrainedModel, folder: Path, config: AdapterConfig) -> CrossEncoder:
    """In the encoder's dtype and on its device. Raises ModelNotUsable when the file is not made for this encoder."""
    if config.base_digest != weights_digest(encoder):
        raise ModelNotUsable(f"{folder} was trained on {config.base}: set EMBED_MODEL to that encoder")
    try:
        tensors = load_file(folder / WEIGHTS_NAME)
    except (OSError, SafetensorError) as error:
        raise ModelNotUsable(f"{folder / WEIGHTS_NAME}: {first_line(error)}") from error
    layer = next(iter(encoder.parameters()))
    model = CrossEncoder(encoder, config.num_layers)
    own = model.own_parameters()
    shapes = {name: weight.shape for name, weight in own.items()}
    if shapes != {name: tensor.shape for name, tensor in tensors.items()}:
        raise ModelNotUsable(f"{folder / WEIGHTS_NAME} does not hold the weights that its config.json names")
    dtype, device = _compute_dtype(encoder), layer.device
    for name, weight in own.items():
        weight.data = tensors[name].to(device=device, dtype=dtype)
    return model.eval().requires_grad_(False)


def weights_digest(encoder: PreTrainedModel) -> str:
    """Of the layers, whatever precision they are kept in; the word table is told by its size alone."""
    digest = hashlib.sha256(str(encoder.config.vocab_size).encode())
    for name, weight in sorted(encoder.named_parameters()):
        if ".layer." in name:
            digest.update(weight.detach().cpu().to(torch.bfloat16).view(torch.int16).numpy().tobytes())
    return digest.hexdigest()


def _sharing_copy(encoder: PreTrainedModel) -> PreTrainedModel:
    """Other modules over the same tensors: what is replaced in the copy stays in the encoder."""
    shared: dict[int, Any] = {id(weight): weight for weight in encoder.parameters()}
    shared |= {id(buffer): buffer for buffer in encoder.buffers()}
    return copy.deepcopy(encoder, shared)


def _own_layers(encoder: Any, num_layers: int) -> None:
    first = encoder.config.num_hidden_layers - num_layers
    for name, module in list(encoder.named_modules()):
        layer = _LAYER.search(name + ".")
        for part, weight in list(module.named_parameters(recurse=False)):
            is_own = layer is not None and int(layer[1]) >= first
            own = nn.Parameter(weight.detach().clone()) if is_own else weight.requires_grad_(False)
            setattr(module, part, own)


def _compute_dtype(encoder: PreTrainedModel) -> torch.dtype:
    """The word table may be kept in another."""
    return next(weight.dtype for name, weight in encoder.named_parameters() if ".layer." in name)
