"""Tokenizers that put a blank before words and hide the first one when they decode, as those of Llama 2 and Mistral.

An answer decodes without its first blank, and a text behind a control token reads with one more than it was given:
neither may cost the generated ids.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers

from inference.front.model_tokenizer import ModelTokenizer
from inference.front.prompts import PromptBuilder
from inference.front.templates import ChatTemplate
from inference.types import Segment
from tests.inference.front import families

SPECIAL = ("<unk>", "<s>", "</s>")
LETTERS = "▁abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,?!()[]/|<>"
WORDS = ("▁the", "▁Hello", "▁world", "Hello", "the", "world")
MISTRAL = "{{ bos_token }}" + families.MISTRAL.replace("'<|im_end|>'", "eos_token")
TEMPLATES = {
    "answers follow at once": MISTRAL,
    "a blank is written before answers": MISTRAL.replace("{{ m.content + ", "{{ ' ' + m.content + "),
    "markers are plain text": "{% for m in messages %}{{ '<|' + m.role + '|>\n' + m.content + eos_token + '\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %}",
}


def word_start_tokenizer(*, blank_everywhere: bool) -> Tokenizer:
    """`blank_everywhere`: behind control tokens too, not only at the very start."""
    vocab = {token: number for number, token in enumerate(SPECIAL)}
    for piece in [*(f"<0x{byte:02X}>" for byte in range(256)), *LETTERS]:
        vocab.setdefault(piece, len(vocab))
    merges = []
    for word in WORDS:
        for end in range(2, len(word) + 1):
            if word[:end] not in vocab:
                vocab[word[:end]] = len(vocab)
                merges.append((word[: end - 1], word[end - 1]))
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges, byte_fallback=True, unk_token="<unk>"))
    if blank_everywhere:
        tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    else:
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    tokenizer.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in SPECIAL])
    return tokenizer


@pytest.fixture(params=[False, True], ids=["blank at the start", "blank everywhere"])
def tokenizer(request: pytest.FixtureRequest, tmp_path: Path) -> ModelTokenizer:
    file = tmp_path / "tokenizer.json"
    word_start_tokenizer(blank_everywhere=request.param).save(str(file))
    return ModelTokenizer(file, bos_token="<s>", eos_token="</s>")


def builder(tokenizer: ModelTokenizer, template: str) -> PromptBuilder:
    source = ChatTemplate(TEMPLATES[template], bos_token="<s>", eos_token="</s>")
    return PromptBuilder(tokenizer, source)


def answer(tokenizer: ModelTokenizer, *pieces: str) -> Segment:
    """Made of these tokens, with the text that its reader got."""
    vocabulary = word_start_tokenizer(blank_everywhere=False).get_vocab()
    ids = tuple(vocabulary[piece] for piece in pieces)
    return Segment("assistant", tokenizer.decode(ids), ids, tokenizer.fingerprint)


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("pieces", [("▁Hello", "▁world"), ("▁", "the"), ("▁H", "e", "l", "l", "o", "▁the")])
def test_an_answer_that_began_with_a_hidden_blank_keeps_every_id(
    tokenizer: ModelTokenizer, template: str, pieces: tuple[str, ...]
) -> None:
    prompts, said = builder(tokenizer, template), answer(tokenizer, *pieces)
    assert not said.text.startswith(" ")
    first = prompts.build([Segment("user", "Hello the world")])
    second = prompts.build([Segment("user", "Hello the world"), said, Segment("user", "the")])
    assert tuple(second.ids[: len(first.ids) + len(pieces)]) == (*first.ids, *said.token_ids)
    assert (second.num_ledger_tokens, second.num_fallbacks) == (len(pieces), 0)


@pytest.mark.parametrize("template", TEMPLATES)
def test_an_answer_without_a_first_blank_is_kept_too(tokenizer: ModelTokenizer, template: str) -> None:
    prompts, said = builder(tokenizer, template), answer(tokenizer, "Hello", "▁w", "o")
    prompt = prompts.build([Segment("user", "the"), said, Segment("user", "world")])
    assert (prompt.num_ledger_tokens, prompt.num_fallbacks) == (3, 0)


def test_a_blank_that_the_template_writes_is_not_there_twice(tokenizer: ModelTokenizer) -> None:
    prompts = builder(tokenizer, "a blank is written before answers")
    said = answer(tokenizer, "▁Hello")
    prompt = prompts.build([Segment("user", "the"), said, Segment("user", "world")])
    assert "[/INST] Hello</s>" in tokenizer.decode(prompt.ids)
    assert "[/INST] Hello</s>" in prompt.text


def test_half_a_character_that_would_join_its_neighbour_is_not_kept(tokenizer: ModelTokenizer) -> None:
    """The first byte of é as the answer's last token, the second as the text behind it."""
    vocabulary = word_start_tokenizer(blank_everywhere=False).get_vocab()
    first, second = (vocabulary[f"<0x{byte:02X}>"] for byte in "é".encode())
    history = [
        Segment("user", "the"),
        Segment("assistant", tokenizer.decode([first]), (first,), tokenizer.fingerprint),
        Segment("assistant", tokenizer.decode([second]), (second,), tokenizer.fingerprint),
    ]
    joining = ChatTemplate("{% for m in messages %}{{ m.content }}{% endfor %}")
    prompt = PromptBuilder(tokenizer, joining).build(history)
    assert "é" not in tokenizer.decode(prompt.ids)
    assert prompt.num_ledger_tokens == 0
    assert prompt.num_fallbacks


def test_text_that_the_tokenizer_itself_changes_costs_no_ledger(tmp_path: Path) -> None:
    """A user's decomposed letters, which the tokenizer composes, are no reason to read all answers anew."""
    raw = word_start_tokenizer(blank_everywhere=False)
    raw.normalizer = normalizers.NFC()
    raw.save(str(tmp_path / "tokenizer.json"))
    tokenizer = ModelTokenizer(tmp_path / "tokenizer.json", bos_token="<s>", eos_token="</s>")
    said = answer(tokenizer, "▁Hello", "▁world")
    history = [Segment("user", "Cafe\u0301?"), said, Segment("user", "the")]
    prompt = builder(tokenizer, "answers follow at once").build(history)
    assert (prompt.num_ledger_tokens, prompt.num_fallbacks) == (2, 0)
