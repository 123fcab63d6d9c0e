"""The parts of the bench of engines: prompts, streams, rates, and the peers that it makes servers of itself."""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import pytest
import torch
from safetensors.torch import load_file

from inference.client import EngineClient
from inference.models.convert_gguf import convert_gguf
from inference.types import RAW, Delta, Done, Event, FinishReason, GenerateRequest, Usage
from tests.bench.engines.answers import Answer, AnswerBroken, Piece, steady_tokens_per_s, tokens_per_s
from tests.bench.engines.asks import Writer
from tests.bench.engines.doors import Door, EngineDoor
from tests.bench.engines.gguf_file import written_gguf
from tests.bench.engines.peers import Place, Transformers
from tests.bench.engines.processes import NotStarted, child
from tests.bench.engines.stream import Read, events
from tests.bench.engines.transformers_ways import load
from tests.bench.fake_engine import TOKEN


@pytest.fixture(scope="module")
def writer(tiny: Path) -> Writer:
    return Writer(tiny)


def test_prompts_have_their_lengths_and_the_text_becomes_the_ids(writer: Writer) -> None:
    chance = random.Random(1)
    shared = writer.words(150, chance)
    first, second = (writer.ask(writer.plain(200, chance, shared), 1) for _ in range(2))
    assert len(first.ids) == len(second.ids) == 200
    assert first.ids[:150] == second.ids[:150]
    assert first.ids[-50:] != second.ids[-50:]
    assert first.segments[0].role == RAW


def test_a_turn_is_so_many_tokens_behind_what_is_known(writer: Writer) -> None:
    chance = random.Random(1)
    ask = writer.ask(writer.turn((), 0, 40, chance), 3)
    answer = [TOKEN, TOKEN + 1, TOKEN + 2]
    again = writer.ask(
        writer.turn(writer.answered(ask.segments, answer, ""), len(ask.ids) + 3, 40, chance), 3
    )
    assert len(ask.ids) == 40
    assert len(again.ids) == 40 + 3 + 40
    assert again.ids[:43] == (*ask.ids, *answer)


def test_events_keep_their_times_wherever_they_are_cut() -> None:
    chunks = [b'data: {"n": 1}\n\ndata: {"n"', b': 2}\n\ndata: {"n": 3}\n\n', b"data: [DONE]\n\n", b""]
    body = [b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks]
    whole = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"".join(body)
    first = whole.index(body[1])
    for size in (1, 7, len(whole)):
        starts = range(0, len(whole), size)
        found = list(events([Read(start, whole[start : start + size]) for start in starts]))
        assert [event.fields["n"] for event in found] == [1, 2, 3]
        assert found[0].at_s < first <= found[1].at_s + size or size == len(whole)


def test_a_stream_that_is_cut_or_refused_is_broken() -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    with pytest.raises(AnswerBroken, match="cut off"):
        list(events([Read(0, head + b'10\r\ndata: {"n": 1}\n\n\r\n')]))
    with pytest.raises(AnswerBroken, match="no room"):
        list(events([Read(0, b"HTTP/1.1 503 no room\r\n\r\n")]))


def test_rates_count_what_they_say() -> None:
    early = Answer(0.0, (Piece(1.0, 1), Piece(2.0, 1), Piece(3.0, 1)), 3, "")
    late = Answer(0.5, (Piece(1.5, 1), Piece(2.5, 1), Piece(4.0, 1)), 3, "")
    assert tokens_per_s([early, late]) == 6 / 4
    assert steady_tokens_per_s([early, late]) == 3 / 1.5
    assert (early.ttft_s, early.tpot_s, late.tpot_s) == (1.0, 1.0, 1.25)
    with pytest.raises(AnswerBroken, match="never under way together"):
        steady_tokens_per_s([early, Answer(0.0, (Piece(3.5, 1), Piece(4.0, 1)), 2, "")])


def test_a_server_that_ends_is_told_with_what_it_said_last(tmp_path: Path) -> None:
    dying = [sys.executable, "-c", "print('no room'); raise SystemExit(1)"]
    with pytest.raises(NotStarted, match="no room"), child(dying, tmp_path / "log", lambda: False):
        pass


async def test_a_door_that_reads_another_prompt_from_the_words_is_refused(tiny: Path, writer: Writer) -> None:
    class Client:
        async def generate(self, request: GenerateRequest) -> AsyncIterator[Event]:
            yield Delta(1, " x", (TOKEN,))
            yield Done(2, FinishReason.LENGTH, Usage(prompt_tokens=21, generated_tokens=1))

    ask = writer.ask(writer.plain(20, random.Random(1)), 1)
    with pytest.raises(AnswerBroken, match="the prompt of 20 tokens became one of 21"):
        await EngineDoor(cast("EngineClient", Client())).answer(ask)


@pytest.mark.parametrize("kind", ["BF16", "Q8_0"])
def test_a_written_file_holds_the_weights_of_the_folder(tiny: Path, tmp_path: Path, kind: str) -> None:
    again = tmp_path / "again"
    again.mkdir()
    convert_gguf(written_gguf(tiny, kind, tmp_path), again)
    before, after = (load_file(folder / "model.safetensors") for folder in (tiny, again))
    assert set(before) == set(after)
    for name, weight in before.items():
        torch.testing.assert_close(
            after[name].float(), weight, rtol=0.01, atol=0.01 if kind == "Q8_0" else 0.0
        )


@pytest.mark.slow
@pytest.mark.parametrize("way", ["one", "static", "continuous"])
def test_transformers_ways_give_what_generate_gives(
    tiny: Path, tmp_path: Path, writer: Writer, way: str
) -> None:
    asks = [writer.ask(writer.plain(num, random.Random(num)), 9) for num in (12, 30, 21)]
    model = load(tiny)
    wanted = []
    for ask in asks:
        ids = torch.tensor([ask.ids])
        made = model.generate(ids, max_new_tokens=9, do_sample=False, eos_token_id=None, pad_token_id=0)
        wanted.append(tuple(made[0, len(ask.ids) :].tolist()))

    async def answers(door: Door) -> list[Answer]:
        return await asyncio.gather(*map(door.answer, asks))

    with Transformers(way).open(Place(tiny, tmp_path, tmp_path)) as opened:
        assert [answer.ids for answer in asyncio.run(answers(opened.door))] == wanted
