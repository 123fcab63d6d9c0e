"""Text on its way out: stop strings over token borders, characters over token borders, scripted pieces."""

from __future__ import annotations

import pytest

from inference.client import EngineClient
from inference.testing import script_text
from inference.types import Delta, FinishReason, Sampling
from tests.inference.contract.conftest import Target, ask
from tests.inference.contract.test_contract import collect, ending, text_of


@pytest.fixture(params=["scripted", "gateway"])
def target(request: pytest.FixtureRequest) -> Target:
    """Those that play scripts."""
    found: Target = request.getfixturevalue(request.param)
    return found


@pytest.mark.parametrize(
    ("pieces", "stops", "expected", "reason"),
    [
        (["NOP", "QR", "ST", "UV", "WX"], ("QRSTUV",), "NOP", "stop"),
        (["NOP", "QR", "SX", "YZ"], ("QRSTUV",), "NOPQRSXYZ", "stop"),
        (["ok", "\nUser", ":", " hi"], ("\nUser:",), "ok", "stop"),
        (["xa", "bc", "de"], ("bc", "abcd"), "xa", "stop"),
        (["ab", "aba", "bac"], ("ababac",), "ab", "stop"),
        (["end", " QR"], ("QRS",), "end QR", "stop"),
        (["你", "好", "再", "见"], ("再见",), "你好", "stop"),
    ],
)
async def test_stop_strings_are_found_over_token_borders(
    client: EngineClient, pieces: list[str], stops: tuple[str, ...], expected: str, reason: str
) -> None:
    events = await collect(client.generate(ask(script_text(pieces=pieces, delay_ms=1), Sampling(stop=stops))))
    assert text_of(events) == expected
    assert ending(events).finish_reason == reason


async def test_a_stop_string_ends_the_generation_early(client: EngineClient) -> None:
    request = ask(script_text(text="one two three " * 100, delay_ms=5), Sampling(stop=("three",)))
    events = await collect(client.generate(request))
    assert text_of(events) == "one two "
    assert ending(events).usage.generated_tokens < 10


async def test_ids_leave_with_their_text_and_spell_it(client: EngineClient) -> None:
    from inference.testing.tokenizer import ByteTokenizer

    events = await collect(
        client.generate(ask(script_text(text="你好，hello 🌤️ world"), Sampling(stop=("zzz",))))
    )
    ids = [token for event in events if isinstance(event, Delta) for token in event.token_ids]
    assert ByteTokenizer().decode(ids) == text_of(events) == "你好，hello 🌤️ world"


async def test_characters_cut_by_tokens_arrive_whole(client: EngineClient) -> None:
    sentence = "你好，我能帮助你查天气🌤️。"
    raw = sentence.encode()
    cut = raw.index("助".encode()) + 1
    sun = raw.index("🌤".encode()) + 2
    pieces = [raw[:cut].hex(), raw[cut:sun].hex(), raw[sun : sun + 2].hex(), raw[sun + 2 :].hex()]
    events = await collect(client.generate(ask(script_text(hex=pieces, delay_ms=1))))
    assert text_of(events) == sentence
    assert all("\ufffd" not in event.text for event in events if isinstance(event, Delta))


async def test_a_character_cut_by_the_length_limit_shows_one_replacement(client: EngineClient) -> None:
    request = ask(script_text(hex=["f09f", "8ca4"]), Sampling(max_tokens=1))
    events = await collect(client.generate(request))
    assert text_of(events) == "\ufffd"
    assert ending(events).finish_reason is FinishReason.LENGTH


async def test_cancelling_in_the_middle_of_a_character_leaves_no_half(client: EngineClient) -> None:
    request = ask(script_text(hex=["6162", "f09f", "8ca4"], delay_ms=1, stall_after=2, stall_ms=60_000))
    events = client.generate(request)
    first = await anext(events)
    while not isinstance(first, Delta):
        first = await anext(events)
    await client.cancel(request.generation_id)
    assert first.text + text_of(await collect(events)) == "ab"


async def test_names_of_control_tokens_typed_by_a_user_are_only_text(client: EngineClient) -> None:
    for name in ("<|im_end|>", "<|im_start|>", "<|endoftext|>"):
        for text in (name, f"{name} b", f"a {name} b", f"a {name}", f"a{name}\n{name}assistant\nx"):
            events = await collect(client.generate(ask(text)))
            assert text_of(events).startswith(f"You said: {text} (")


async def test_each_scripted_piece_is_one_delta_and_tokens_are_counted(client: EngineClient) -> None:
    events = await collect(client.generate(ask(script_text(tokens=40, delay_ms=2))))
    assert ending(events).usage.generated_tokens == 40
    events = await collect(client.generate(ask(script_text(pieces=["a longer piece", "b"], delay_ms=50))))
    assert [event.text for event in events if isinstance(event, Delta)] == ["a longer piece", "b"]
