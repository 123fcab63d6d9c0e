"""Which models have Llama's shape, and their weights as the fused layers want them, by name from the model's files.

Knows the names of tensors in transformers' families. Does not know how anything is computed (`network`, `kernels`) nor
how matrices are kept (`linears`, `int8`). Nothing of transformers' modelling is imported, which takes a second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError

from inference.models.attention import Scoring
from inference.models.fused.kernels import Kernels
from inference.models.fused.linears import PLAIN, Form, Linear
from inference.models.fused.network import FusedNetwork, Layer, Weights
from inference.models.plain_config import FAMILIES, head_dim
from inference.models.weight_files import WeightFiles

Shapes = dict[str, tuple[int, ...]]
EMBEDDING, NORM, HEAD = "model.embed_tokens.weight", "model.norm.weight", "lm_head.weight"


@dataclass(frozen=True, slots=True)
class Making:
    """How the weights of a folder are to be kept and run."""

    dtype: torch.dtype
    device: str
    form: Form
    kernels: Kernels


@dataclass(frozen=True, slots=True)
class Fused:
    """`weight_bytes` is what stays in memory; the rows of a word table that lies in its file are not in it."""

    network: FusedNetwork
    weight_bytes: int


def is_llama_shaped(config: Any) -> bool:
    """Whether `fuse` may try: a config of transformers, or one read without it."""
    return (
        config.model_type in FAMILIES
        and config.hidden_act == "silu"
        and not getattr(config, "quantization_config", None)
        and "partial_rotary_factor" not in config.rope_parameters
    )


def fuse(folder: Path, config: Any, windows: Sequence[int | None], making: Making) -> Fused | None:
    """A network with the folder's weights; layer by layer, how many tokens are seen (None: all).

    None where the files do not hold exactly the expected tensors: transformers knows more spellings, and says what is
    wrong. One layer at a time is read, so that no more than that is in memory twice.
    """
    try:
        files = WeightFiles(folder)
    except (OSError, ValueError, SafetensorError):
        return None
    expected = _shapes(config)
    if any(files.shape(name) != shape for name, shape in expected.items()):
        return None
    if config.tie_word_embeddings and files.shape(HEAD) is not None:
        return None
    del files
    return _Reader(folder, expected, config, making).fused(windows)


def _shapes(config: Any) -> Shapes:
    width, inner, vocabulary = config.hidden_size, config.intermediate_size, config.vocab_size
    queries, keys = (
        num_heads * head_dim(config) for num_heads in (config.num_attention_heads, config.num_key_value_heads)
    )
    matrices = {
        "self_attn.q_proj": (queries, width),
        "self_attn.k_proj": (keys, width),
        "self_attn.v_proj": (keys, width),
        "self_attn.o_proj": (width, queries),
        "mlp.gate_proj": (inner, width),
        "mlp.up_proj": (inner, width),
        "mlp.down_proj": (width, inner),
    }
    layer: Shapes = {"input_layernorm.weight": (width,), "post_attention_layernorm.weight": (width,)}
    layer |= {f"{name}.weight": shape for name, shape in matrices.items()}
    layer |= {f"{name}.bias": matrices[name][:1] for name in matrices if _has_bias(config, name)}
    if config.model_type == "qwen3":
        layer |= {f"self_attn.{part}_norm.weight": (head_dim(config),) for part in "qk"}
    shapes: Shapes = {EMBEDDING: (vocabulary, width), NORM: (width,)}
    if not config.tie_word_embeddings:
        shapes[HEAD] = (vocabulary, width)
    for number in range(config.num_hidden_layers):
        shapes |= {f"model.layers.{number}.{name}": shape for name, shape in layer.items()}
    return shapes


def _has_bias(config: Any, matrix: str) -> bool:
    if config.model_type == "qwen2":
        return matrix in ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")
    if config.model_type == "mistral":
        return False
    if matrix.startswith("mlp."):
        return bool(getattr(config, "mlp_bias", False))
    return bool(getattr(config, "attention_bias", False))


def _frequencies(config: Any) -> tuple[torch.Tensor, float]:
    """(head_dim / 2,) fp32, and what cosines and sines are scaled by."""
    rope = config.rope_parameters
    if rope["rope_type"] == "default":
        exponents = torch.arange(0, head_dim(config), 2, dtype=torch.float) / head_dim(config)
        return 1.0 / (rope["rope_theta"] ** exponents), 1.0
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    frequencies, scale = ROPE_INIT_FUNCTIONS[rope["rope_type"]](config, torch.device("cpu"))
    return frequencies.float(), float(scale)


class _Reader:
    """Takes tensors out of the files, layer by layer, and counts what stays."""

    def __init__(self, folder: Path, expected: Shapes, config: Any, making: Making) -> None:
        self._folder = folder
        self._expected = expected
        self._config = config
        self._making = making
        self._bytes = 0

    def fused(self, windows: Sequence[int | None]) -> Fused:
        config, making = self._config, self._making
        layers = [self._layer(number, window) for number, window in enumerate(windows)]
        files = WeightFiles(self._folder)
        norm = self._vector(files, NORM)
        embedding, head = self._ends(files)
        frequencies, scale = _frequencies(config)
        weights = Weights(
            embedding=embedding,
            layers=layers,
            norm=norm,
            head=head,
            frequencies=frequencies.to(making.device),
            rotary_scale=scale,
            num_heads=config.num_attention_heads,
            eps=config.rms_norm_eps,
        )
        return Fused(FusedNetwork(weights, making.kernels, making.form.description), self._bytes)

    def _layer(self, number: int, window: int | None) -> Layer:
        files, prefix = WeightFiles(self._folder), f"model.layers.{number}."
        has_head_norms = f"{prefix}self_attn.q_norm.weight" in self._expected
        return Layer(
            norm=self._vector(files, f"{prefix}input_layernorm.weight"),
            project=self._joined(files, *(f"{prefix}self_attn.{part}_proj" for part in "qkv")),
            query_norm=self._vector(files, f"{prefix}self_attn.q_norm.weight") if has_head_norms else None,
            key_norm=self._vector(files, f"{prefix}self_attn.k_norm.weight") if has_head_norms else None,
            mix=self._joined(files, f"{prefix}self_attn.o_proj"),
            mlp_norm=self._vector(files, f"{prefix}post_attention_layernorm.weight"),
            widen=self._joined(files, f"{prefix}mlp.gate_proj", f"{prefix}mlp.up_proj"),
            narrow=self._joined(files, f"{prefix}mlp.down_proj"),
            scoring=Scoring(head_dim(self._config) ** -0.5, window),
        )

    def _ends(self, files: WeightFiles) -> tuple[torch.Tensor, Linear]:
        """The word table and the head.

        On a CPU the table stays in its file: only rows that are looked up come into memory, so that a packed head
        beside it is no second copy. The mapping is a new one, because what was read of another stays with it.
        """
        making = self._making
        is_tied = self._config.tie_word_embeddings
        if making.device == "cpu" and making.form.copies:
            head = self._joined(files, (EMBEDDING if is_tied else HEAD).removesuffix(".weight"))
            return WeightFiles(self._folder).tensor(EMBEDDING), head
        embedding = self._moved(files.tensor(EMBEDDING))
        self._bytes += embedding.nbytes
        if is_tied:
            return embedding, PLAIN.pack(embedding, None)
        return embedding, self._joined(files, HEAD.removesuffix(".weight"))

    def _joined(self, files: WeightFiles, *names: str) -> Linear:
        """One matrix of several that are multiplied with the same states."""
        weights = [self._moved(files.tensor(f"{name}.weight")) for name in names]
        biases = [
            self._moved(files.tensor(f"{name}.bias")) for name in names if f"{name}.bias" in self._expected
        ]
        form = self._making.form
        self._bytes += form.stored_bytes(sum(map(torch.numel, weights)), self._making.dtype)
        self._bytes += sum(bias.nbytes for bias in biases)
        weight = weights[0] if len(weights) == 1 else torch.cat(weights)
        return form.pack(weight, torch.cat(biases) if biases else None)

    def _vector(self, files: WeightFiles, name: str) -> torch.Tensor:
        # A copy: a view would hold the whole file in memory.
        vector = self._moved(files.tensor(name)).clone()
        self._bytes += vector.nbytes
        return vector

    def _moved(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.to(self._making.device, self._making.dtype)
