"""The tokenizer inside a GGUF file as a `tokenizers.Tokenizer`.

Knows byte-level BPE and how the named families split text before it. SentencePiece tokenizers are refused.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from inference.models.errors import ModelNotUsable

_CONTROL, _USER_DEFINED = 3, 4  # token types of the GGUF format

_QWEN_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def _gpt2_splitter() -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.ByteLevel(add_prefix_space=False)


def _smollm_splitter() -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), _gpt2_splitter()])


def _qwen_splitter() -> pre_tokenizers.PreTokenizer:
    words = pre_tokenizers.Split(Regex(_QWEN_SPLIT), behavior="isolated")
    return pre_tokenizers.Sequence([words, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


_SPLITTERS: dict[str, Callable[[], pre_tokenizers.PreTokenizer]] = {
    "gpt-2": _gpt2_splitter,
    "smollm": _smollm_splitter,
    "qwen2": _qwen_splitter,
}


def tokenizer_from_gguf(source: Path, fields: dict[str, Any]) -> Tokenizer:
    """A tokenizer with the file's vocabulary, merges, splitting rule and special tokens."""
    kind, splitter = fields.get("tokenizer.ggml.model"), fields.get("tokenizer.ggml.pre")
    if kind != "gpt2" or splitter not in _SPLITTERS:
        raise ModelNotUsable(
            f"{source}: the tokenizer {kind!r} / {splitter!r} is not converted; use a safetensors folder"
        )
    tokens: list[str] = fields["tokenizer.ggml.tokens"]
    vocab = {token: token_id for token_id, token in enumerate(tokens)}
    merges = [tuple(merge.split(" ", 1)) for merge in fields["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges))
    if splitter == "qwen2":
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = _SPLITTERS[splitter]()
    tokenizer.decoder = decoders.ByteLevel()
    added = list(zip(tokens, fields["tokenizer.ggml.token_type"], strict=True))
    tokenizer.add_special_tokens(
        [AddedToken(token, special=True, normalized=False) for token, kind in added if kind == _CONTROL]
    )
    tokenizer.add_tokens(
        [AddedToken(token, normalized=False) for token, kind in added if kind == _USER_DEFINED]
    )
    return tokenizer
