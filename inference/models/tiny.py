"""Tiny random models, written as ordinary model folders.

Knows the smallest shapes that still exercise the engine: grouped KV heads, tied embeddings, attention biases,
sliding windows, capped scores, a byte-level tokenizer whose Chinese characters span several tokens, a ChatML template.
Does not know the engine; nothing here is trained, so the text means nothing, but the same seed gives the
same weights and therefore the same greedy answer.

    python -m inference.models.tiny FOLDER [FAMILY] [--tools]   makes a model that `MODEL=FOLDER` serves within a second
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from inference.front.templates import CHATML_WITH_TOOLS
from inference.tools.formats import HERMES

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel

END_OF_TEXT, IM_START, IM_END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"

CHATML_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)

# Each word becomes one token, and so does each of its beginnings. Words with a space come first: a merge that is
# listed earlier wins, and " the" must not begin with "th".
_MERGED_WORDS = (
    " the", " and", " of", " to", " is", " you", " that", " what", " with", " world", " are", " helpful",
    "the", "user", "assistant", "system", "Hello", "You", "ing", "er",
)  # fmt: skip
# Two of the three bytes of this character are joined: it takes two tokens, other Chinese characters three.
_HALF_MERGED_CHARACTER = "你"

# Wide enough that the best token leads clearly: at the usual 0.02 a random model's logits nearly tie.
_WEIGHT_STD = 0.25
_NORM_STD = 0.05

_LLAMA_SHAPE: dict[str, Any] = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 2048,
    "rms_norm_eps": 1e-5,
    "tie_word_embeddings": True,
}
_FAMILY_SHAPES: dict[str, dict[str, Any]] = {
    "llama": _LLAMA_SHAPE,
    "qwen2": _LLAMA_SHAPE,
    "qwen3": _LLAMA_SHAPE | {"head_dim": 16},
    "mistral": _LLAMA_SHAPE | {"sliding_window": None, "head_dim": 16},
    # Caps as low as these bend every score; at the real 50 and 30 a tiny model would never come near them. So narrow a
    # model does not echo its last token, although its head is tied to embeddings that this family scales up.
    "gemma2": _LLAMA_SHAPE
    | {"hidden_size": 16, "head_dim": 32, "num_hidden_layers": 4, "sliding_window": 32}
    | {"query_pre_attn_scalar": 16}
    | {"attn_logit_softcapping": 2.0, "final_logit_softcapping": 5.0},
    "gemma3_text": _LLAMA_SHAPE
    | {"head_dim": 16, "num_hidden_layers": 3, "sliding_window": 32, "query_pre_attn_scalar": 16}
    # Untied: this family scales its embeddings up, and a tied random head would only echo the last token.
    | {"tie_word_embeddings": False}
    | {"layer_types": ["sliding_attention", "sliding_attention", "full_attention"]},
}


def write_tiny_model(
    folder: Path | str, family: str = "llama", seed: int = 0, *, has_tools: bool = False, **shape: Any
) -> Path:
    """A folder with a random causal LM (about 0.4 MB, fp32), its tokenizer and its ChatML template.

    `has_tools`: the template shows functions, and the marks of calls are tokens, as in models that are trained to
    call. `shape` overrides fields of the transformers config, for example `num_hidden_layers=4`.
    """
    from transformers import AutoConfig, AutoModelForCausalLM

    if family not in _FAMILY_SHAPES:
        raise ValueError(f"unknown tiny family {family!r}; there are {', '.join(sorted(_FAMILY_SHAPES))}")
    tokenizer = byte_level_tokenizer()
    if has_tools:
        tokenizer.add_tokens([AddedToken(mark, normalized=False) for mark in HERMES.marks])
    ids = {name: tokenizer.token_to_id(token) for name, token in _special_tokens().items()}
    fields = _FAMILY_SHAPES[family] | ids | {"vocab_size": tokenizer.get_vocab_size()} | shape
    config = AutoConfig.for_model(family, **fields)
    folder = _write_model(folder, config, AutoModelForCausalLM, seed)
    template = CHATML_WITH_TOOLS if has_tools else CHATML_TEMPLATE
    _write_tokenizer(folder, tokenizer, chat_template=template, max_length=config.max_position_embeddings)
    return folder


def write_tiny_embedder(folder: Path | str, seed: int = 0, **shape: Any) -> Path:
    """A folder with a random BERT encoder of 32 dimensions and its tokenizer."""
    from transformers import AutoConfig, AutoModel

    tokenizer = byte_level_tokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{IM_START} $A {IM_END}",
        special_tokens=[(token, tokenizer.token_to_id(token)) for token in (IM_START, IM_END)],
    )
    config = AutoConfig.for_model("bert", **(_bert_shape(tokenizer) | shape))
    folder = _write_model(folder, config, AutoModel, seed)
    _write_tokenizer(folder, tokenizer, chat_template=None, max_length=512)
    return folder


def write_tiny_verifier(folder: Path | str, seed: int = 0, **shape: Any) -> Path:
    """A folder with a random BERT cross-encoder and its tokenizer, which frames pairs; `num_labels` is 1 or 2."""
    from transformers import AutoConfig, AutoModelForSequenceClassification

    tokenizer = byte_level_tokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{IM_START} $A {IM_END}",
        pair=f"{IM_START}:0 $A:0 {IM_END}:0 $B:1 {IM_END}:1",
        special_tokens=[(token, tokenizer.token_to_id(token)) for token in (IM_START, IM_END)],
    )
    fields = _bert_shape(tokenizer) | {"num_labels": 1} | shape
    config = AutoConfig.for_model("bert", **fields)
    folder = _write_model(folder, config, AutoModelForSequenceClassification, seed)
    _write_tokenizer(folder, tokenizer, chat_template=None, max_length=config.max_position_embeddings)
    return folder


def byte_level_tokenizer() -> Tokenizer:
    """A byte-level BPE of about 350 tokens; any text survives encode and decode unchanged."""
    vocab = {END_OF_TEXT: 0, IM_START: 1, IM_END: 2}
    for letter in sorted(pre_tokenizers.ByteLevel.alphabet()):
        vocab[letter] = len(vocab)
    merges: list[tuple[str, str]] = []
    spell = normalizers.ByteLevel().normalize_str
    for letters in [*map(spell, _MERGED_WORDS), spell(_HALF_MERGED_CHARACTER)[:2]]:
        for end in range(2, len(letters) + 1):
            if letters[:end] not in vocab:
                vocab[letters[:end]] = len(vocab)
                merges.append((letters[: end - 1], letters[end - 1]))
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(
        [AddedToken(token, special=True, normalized=False) for token in (END_OF_TEXT, IM_START, IM_END)]
    )
    return tokenizer


def _bert_shape(tokenizer: Tokenizer) -> dict[str, Any]:
    return {
        "vocab_size": tokenizer.get_vocab_size(),
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "max_position_embeddings": 512,
        "pad_token_id": tokenizer.token_to_id(END_OF_TEXT),
    }


def _special_tokens() -> dict[str, str]:
    return {"bos_token_id": IM_START, "eos_token_id": IM_END, "pad_token_id": END_OF_TEXT}


def _write_model(folder: Path | str, config: PreTrainedConfig, model_class: Any, seed: int) -> Path:
    from transformers.utils import logging

    logging.disable_progress_bar()
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    model = model_class.from_config(config)
    _randomise(model, seed)
    model.save_pretrained(folder)
    return folder


def _randomise(model: PreTrainedModel, seed: int) -> None:
    """Fills every weight from its own generator; biases too, so that a forgotten bias shows in the answer."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            noise = torch.randn(weight.shape, generator=generator)
            if weight.ndim == 1 and not name.endswith("bias"):
                weight.add_(noise * _NORM_STD)  # around the family's own start: 1, or 0 where it adds one
            else:
                weight.copy_(noise * _WEIGHT_STD)


def _write_tokenizer(folder: Path, tokenizer: Tokenizer, chat_template: str | None, max_length: int) -> None:
    tokenizer.save(str(folder / "tokenizer.json"))
    fields: dict[str, Any] = {
        "tokenizer_class": "TokenizersBackend",
        "bos_token": IM_START,
        "eos_token": IM_END,
        "pad_token": END_OF_TEXT,
        "model_max_length": max_length,
        "clean_up_tokenization_spaces": False,
    }
    if chat_template is not None:
        fields["chat_template"] = chat_template
    text = json.dumps(fields, ensure_ascii=False, indent=2)
    (folder / "tokenizer_config.json").write_text(text, encoding="utf-8")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m inference.models.tiny", description="Writes a random model."
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("family", nargs="?", default="llama", choices=sorted(_FAMILY_SHAPES))
    parser.add_argument("--tools", action="store_true", help="with a template that shows functions")
    options = parser.parse_args(argv)
    print(write_tiny_model(options.folder, options.family, has_tools=options.tools))
    return 0


if __name__ == "__main__":
    sys.exit(main())
