"""Each rule notices the mistake that it is there for: the rule's own check, run over a wrong engine, fails.

The mistakes are those that engines really make; each mutant says which.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch
from transformers import AttentionInterface

from inference.core import forward, sampler
from inference.core.conversations import Conversations
from inference.core.kept import KeptBlocks
from inference.core.outcome import Outcome
from inference.core.prefix import Salts
from inference.front.detokenizer import Detokenizer
from inference.front.model_tokenizer import ModelTokenizer
from inference.models.attention import ATTENTION_NAME, KvTensors, ragged_attention
from tests.inference.exactness import core_rules, front_rules

pytestmark = pytest.mark.filterwarnings("ignore")


def broken() -> Any:
    return pytest.raises((AssertionError, pytest.fail.Exception))


def test_a_tail_that_is_not_copied_is_noticed(make_driver, monkeypatch) -> None:
    """Two branches that write into one block, or read an empty one."""
    monkeypatch.setattr(KvTensors, "copy_block", lambda self, source, target: None)
    with broken():
        core_rules.answers_do_not_depend_on_company(make_driver, "llama")


def test_a_lost_block_is_noticed(monkeypatch) -> None:
    """The classic leak: one block of a sequence is never given back."""
    release = KeptBlocks.release
    monkeypatch.setattr(KeptBlocks, "release", lambda self, blocks: release(self, blocks[:-1]))
    with broken():
        core_rules.blocks_add_up(100)


def test_a_turn_that_is_computed_again_is_noticed(make_driver, monkeypatch) -> None:
    """Full blocks are found by content, the partial last one and what the model wrote are lost."""
    monkeypatch.setattr(Conversations, "keep", lambda self, conversation, ids, blocks: set())
    with broken():
        core_rules.a_turn_costs_what_is_new(make_driver, "llama")


def test_a_missing_salt_is_noticed(make_driver, monkeypatch) -> None:
    """Equal prompts of two owners meet: time tells one what the other asked."""
    monkeypatch.setattr(Salts, "at", lambda self, index: b"")
    with broken():
        core_rules.owners_share_nothing(make_driver, "llama")


def test_silent_attention_over_the_future_is_noticed(load_tiny) -> None:
    """Without metadata the plain kernel runs, and nothing is causal."""

    def silent(module: torch.nn.Module, query: Any, key: Any, value: Any, mask: Any, **options: Any) -> Any:
        wide = query.shape[1] // key.shape[1]
        key, value = key.repeat_interleave(wide, 1), value.repeat_interleave(wide, 1)
        output = torch.nn.functional.scaled_dot_product_attention(query, key, value)
        return output.transpose(1, 2), None

    model = load_tiny("llama-unfused")
    AttentionInterface.register(ATTENTION_NAME, silent)
    try:
        with broken():
            core_rules.attention_refuses_a_plain_call(model)
    finally:
        AttentionInterface.register(ATTENTION_NAME, ragged_attention)


def test_tokens_decoded_one_by_one_are_noticed(served, monkeypatch) -> None:
    """A character of several tokens becomes replacement characters."""
    decode = served.tokenizer.decode
    monkeypatch.setattr(Detokenizer, "push", lambda self, token: decode([token]))
    with broken():
        front_rules.streams_join_to_the_whole(served)


def test_a_stop_string_looked_for_in_single_deltas_is_noticed(served, monkeypatch) -> None:
    """One that spans two tokens is never found, or its first part has left already."""
    from inference.front.stops import StopFilter

    def in_one_delta(self: StopFilter, text: str) -> tuple[str, bool]:
        return text, False

    monkeypatch.setattr(StopFilter, "push", in_one_delta)
    with broken():
        front_rules.streams_join_to_the_whole(served)


def test_typed_control_tokens_are_noticed(served, monkeypatch) -> None:
    """The text is encoded as the template's own: whoever types the end of a turn ends it."""

    def with_control_tokens(self: ModelTokenizer, text: str, *, is_start: bool = False) -> list[int]:
        return list(self._full.encode(text, add_special_tokens=False).ids)

    monkeypatch.setattr(ModelTokenizer, "encode_plain", with_control_tokens)
    with broken():
        front_rules.typed_text_never_becomes_control_tokens(served)


def test_broken_numbers_that_are_sampled_are_noticed(make_driver, monkeypatch) -> None:
    """argmax of NaN is some token: the poison goes on as if nothing were wrong."""
    monkeypatch.setattr(sampler, "are_sound", lambda logits: [True] * len(logits))
    monkeypatch.setattr(forward, "are_sound", lambda logits: [True] * len(logits))
    monkeypatch.setattr(torch, "isfinite", lambda values: torch.ones_like(values, dtype=torch.bool))
    with broken():
        core_rules.poison_fails_alone(make_driver, "llama")


def test_a_batch_that_fails_together_is_noticed(make_driver, monkeypatch) -> None:
    """One broken row ends everybody's answer."""
    outcomes = forward.Forward._outcomes

    def together(self: forward.Forward, chunks: Any, logits: torch.Tensor) -> list[Outcome]:
        made = outcomes(self, chunks, logits)
        errors = [outcome for outcome in made if outcome.error]
        return [errors[0]] * len(made) if errors else made

    monkeypatch.setattr(forward.Forward, "_outcomes", together)
    with broken():
        core_rules.poison_fails_alone(make_driver, "llama")


def test_one_random_stream_for_all_is_noticed(make_driver, monkeypatch) -> None:
    """The answer to a seed depends on who else draws."""
    source = random.Random(0)
    monkeypatch.setattr(sampler, "uniform", lambda seed, position: source.random())
    with broken():
        core_rules.randomness_depends_on_seed_and_position_only(make_driver, "llama")
