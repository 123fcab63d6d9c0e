"""Generated ids are used again token for token, whatever the template does with the answer's text."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from inference import settings
from inference.config import EngineConfig
from inference.front.model_folder import read_model_folder
from inference.front.model_tokenizer import ModelTokenizer
from inference.front.prompts import Prompt, PromptBuilder
from inference.front.templates import ChatTemplate
from inference.models.resolve import resolve
from inference.models.tiny import byte_level_tokenizer
from inference.types import Segment
from tests.inference.front import families

# Pieces of answers: words and blanks, Chinese over several tokens, tags, and names of control tokens as text.
PIECES = ["the", " world", " ", "\n", "\n\n", "你好", "é", "🙂", "<think>", "</think>", "<", "<|im_end|>"]
TEXTS = st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=10).map(
    lambda parts: "".join(parts).encode("utf-8", "replace").decode()
)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> ModelTokenizer:
    file = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    byte_level_tokenizer().save(str(file))
    return ModelTokenizer(file, eos_token="<|im_end|>")


@pytest.fixture(scope="module")
def thinking_tokenizer(tmp_path_factory: pytest.TempPathFactory) -> ModelTokenizer:
    raw = byte_level_tokenizer()
    raw.add_tokens(["<think>", "</think>"])
    file = tmp_path_factory.mktemp("thinking") / "tokenizer.json"
    raw.save(str(file))
    return ModelTokenizer(file, eos_token="<|im_end|>")


@cache
def builder(tokenizer: ModelTokenizer, source: str) -> PromptBuilder:
    return PromptBuilder(tokenizer, ChatTemplate(source))


@st.composite
def odd_ids(draw: st.DrawFn, tokenizer: ModelTokenizer, text: str) -> tuple[int, ...]:
    """Ids that spell `text`, cut where the tokenizer itself would not cut it."""
    cuts = sorted(draw(st.sets(st.integers(0, len(text)), max_size=6)) | {0, len(text)})
    pieces = (text[start:end] for start, end in pairwise(cuts))
    return tuple(token for piece in pieces for token in tokenizer.encode_plain(piece))


def next_turn(
    tokenizer: ModelTokenizer, source: str, answer: str, ids: tuple[int, ...], following: str = "And then?"
) -> Prompt:
    history = [
        Segment("user", "Hello"),
        Segment("assistant", answer, ids, tokenizer.fingerprint),
        Segment("user", following),
    ]
    return builder(tokenizer, source).build(history)


@pytest.mark.parametrize("family", families.ALL)
@examples(max_examples=25)
@given(data=st.data())
def test_ids_spell_the_rendered_text_whatever_the_template_and_the_ledger(
    tokenizer: ModelTokenizer, family: str, data: st.DataObject
) -> None:
    source, answer, following = families.ALL[family], data.draw(TEXTS), data.draw(TEXTS)
    ids = data.draw(odd_ids(tokenizer, answer))
    prompt = next_turn(tokenizer, source, answer, ids, following)
    rendered = builder(tokenizer, source).render(
        [Segment("user", "Hello"), Segment("assistant", answer), Segment("user", following)]
    )
    assert prompt.text == rendered
    assert tokenizer.decode(prompt.ids) == rendered


@pytest.mark.parametrize("family", families.ALL)
@examples(max_examples=25)
@given(data=st.data())
def test_no_text_of_a_turn_becomes_a_control_token(
    tokenizer: ModelTokenizer, family: str, data: st.DataObject
) -> None:
    source, answer, following = families.ALL[family], data.draw(TEXTS), data.draw(TEXTS)
    ids = data.draw(odd_ids(tokenizer, answer))
    harmless = next_turn(tokenizer, source, "x", ())
    prompt = next_turn(tokenizer, source, answer, ids, following)
    assert _num_controls(tokenizer, prompt) == _num_controls(tokenizer, harmless)


@given(data=st.data())
def test_an_answer_that_stays_as_it_is_keeps_every_id(tokenizer: ModelTokenizer, data: st.DataObject) -> None:
    answer = data.draw(TEXTS)
    ids = data.draw(odd_ids(tokenizer, answer))
    first = builder(tokenizer, families.CHATML).build([Segment("user", "Hello")])
    second = next_turn(tokenizer, families.CHATML, answer, ids)
    assert tuple(second.ids[: len(first.ids) + len(ids)]) == (*first.ids, *ids)
    assert (second.num_ledger_tokens, second.num_fallbacks) == (len(ids), 0)


@pytest.mark.parametrize("family", ["qwen thinking", "deepseek thinking"])
@given(data=st.data())
def test_of_an_answer_without_its_thinking_the_rest_keeps_its_ids(
    tokenizer: ModelTokenizer, family: str, data: st.DataObject
) -> None:
    thought, said = data.draw(st.text("abc \n", max_size=8)), data.draw(st.text("th ewor你", min_size=1))
    said = said.strip() or "x"
    thinking = tuple(tokenizer.encode_plain(f"<think>{thought}</think>"))
    ids = data.draw(odd_ids(tokenizer, said))
    prompt = next_turn(tokenizer, families.ALL[family], f"<think>{thought}</think>{said}", (*thinking, *ids))
    assert (prompt.num_ledger_tokens, prompt.num_fallbacks) == (len(ids), 0)
    assert _holds(prompt.ids, ids)
    assert "</think>" not in prompt.text


@given(data=st.data())
def test_thinking_that_stays_letter_by_letter_keeps_every_id(
    tokenizer: ModelTokenizer, data: st.DataObject
) -> None:
    """The template takes both answers apart and puts them together with blanks of its own: the first is the same again,
    and its ids go across the seams; the second is not."""
    prompts = builder(tokenizer, families.REBUILT_THINKING)
    answer = "<think>\nthe world\n</think>\n\nHello"
    ids = data.draw(odd_ids(tokenizer, answer))
    history = [
        Segment("user", "Hello"),
        Segment("assistant", answer, ids, tokenizer.fingerprint),
        Segment("user", "And then?"),
        Segment("assistant", "<think>you</think>You"),
        Segment("user", "And then?"),
    ]
    first, third = prompts.build(history[:1]), prompts.build(history)
    assert "<think>\nyou\n</think>\n\nYou" in third.text
    assert tuple(third.ids[: len(first.ids) + len(ids)]) == (*first.ids, *ids)
    assert third.num_fallbacks == 0


@pytest.mark.parametrize("family", families.ALL)
@examples(max_examples=25)
@given(typed=TEXTS, kept=TEXTS)
def test_tags_that_a_user_types_are_text_where_they_are_tokens(
    thinking_tokenizer: ModelTokenizer, family: str, typed: str, kept: str
) -> None:
    answer = Segment("assistant", "<think>two and two</think>Four.")
    prompts = builder(thinking_tokenizer, families.ALL[family])
    prompt = prompts.build([Segment("user", typed), answer, Segment("user", kept)])
    harmless = prompts.build([Segment("user", "x"), answer, Segment("user", "x")])
    tags = {thinking_tokenizer.control_id(tag) for tag in ("<think>", "</think>")}
    assert sum(token in tags for token in prompt.ids) == sum(token in tags for token in harmless.ids)


def test_a_seam_inside_a_token_costs_that_token_only(tokenizer: ModelTokenizer) -> None:
    """One token holds a blank that the template cuts and the word that it keeps."""
    ids = (*tokenizer.encode_plain("\n"), *tokenizer.encode_plain(" the"), *tokenizer.encode_plain(" world"))
    line_end_cut = next_turn(tokenizer, families.QWEN_THINKING, "\n the world", ids)
    assert (line_end_cut.num_ledger_tokens, line_end_cut.num_fallbacks) == (2, 0)
    blank_cut = next_turn(tokenizer, families.TRIMMING, "\n the world", ids)
    assert (blank_cut.num_ledger_tokens, blank_cut.num_fallbacks) == (1, 1)


def test_ids_of_another_text_are_counted_and_left(tokenizer: ModelTokenizer) -> None:
    ids = tuple(tokenizer.encode_plain("something else"))
    prompt = next_turn(tokenizer, families.CHATML, "the answer", ids)
    assert (prompt.num_ledger_tokens, prompt.num_fallbacks) == (0, 1)


def test_another_process_with_the_same_folder_builds_the_same_ids(
    tokenizer: ModelTokenizer, tmp_path: Path
) -> None:
    byte_level_tokenizer().save(str(tmp_path / "tokenizer.json"))
    again = ModelTokenizer(tmp_path / "tokenizer.json", eos_token="<|im_end|>")
    ids = (*tokenizer.encode_plain("th"), *tokenizer.encode_plain("e"))
    first = next_turn(tokenizer, families.QWEN_THINKING, "the", ids)
    segment = Segment("assistant", "the", ids, tokenizer.fingerprint)
    second = PromptBuilder(again, ChatTemplate(families.QWEN_THINKING)).build(
        [Segment("user", "Hello"), segment, Segment("user", "And then?")]
    )
    assert second == first
    assert second.num_ledger_tokens == 2


@pytest.mark.model
def test_pairs_of_real_tokens_that_read_back_as_others_are_kept() -> None:
    folder = resolve(EngineConfig().model, settings.read(EngineConfig).data_dir)
    model = read_model_folder(folder, None)
    tokenizer = model.tokenizer
    plain = [token for token in range(300, 3000) if token not in tokenizer.special_ids]
    pairs = [
        pair
        for pair in pairwise(plain)
        if "\ufffd" not in (text := tokenizer.decode(pair)) and tokenizer.encode_plain(text) != list(pair)
    ]
    assert len(pairs) > 100
    for ids in pairs[:100]:
        answer = Segment("assistant", tokenizer.decode(ids), ids, tokenizer.fingerprint)
        first = model.prompts.build([Segment("user", "Hi")])
        second = model.prompts.build([Segment("user", "Hi"), answer, Segment("user", "?")])
        assert second.ids[: len(first.ids) + 2] == [*first.ids, *ids]
        assert second.num_fallbacks == 0


def _num_controls(tokenizer: ModelTokenizer, prompt: Prompt) -> int:
    return sum(token in tokenizer.special_ids for token in prompt.ids)


def _holds(ids: list[int], part: tuple[int, ...]) -> bool:
    return any(tuple(ids[start : start + len(part)]) == part for start in range(len(ids)))
