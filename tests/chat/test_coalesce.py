"""Merging pieces: nothing is lost or reordered, and no token waits longer than it may, whatever the source does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatsite.chat.coalesce import coalesce, merged
from chatsite.chat.events import Piece, ReplyEvent, Waiting
from inference.types import TokenLogprob
from tests.chat.virtual import run_virtually

MAX_TOKENS = 4
MAX_WAIT_S = 0.05
GENERATION = uuid4()
# Gaps in milliseconds before each token: bursts, a steady model, a stalling one.
GAPS = st.lists(st.sampled_from([0, 0, 1, 7, 20, 49, 50, 51, 400, 5000]), min_size=1, max_size=60)


class Source:
    """Pieces of one numbered word each, after the given gaps; remembers when each was said."""

    def __init__(self, gaps_ms: list[int]) -> None:
        self.gaps_ms = gaps_ms
        self.said_at: list[float] = []
        self.is_closed = False

    async def events(self) -> AsyncGenerator[ReplyEvent, None]:
        offset = 0
        try:
            for number, gap_ms in enumerate(self.gaps_ms, 1):
                await asyncio.sleep(gap_ms / 1000)
                self.said_at.append(asyncio.get_running_loop().time())
                text = f"{number} "
                yield Piece(GENERATION, number, offset, text, 1)
                offset += len(text)
        finally:
            self.is_closed = True


def test_what_is_told_of_each_token_is_merged_with_its_text() -> None:
    first, second = (TokenLogprob(number, b"x", -number) for number in (1, 2))
    pieces = [Piece(GENERATION, one.token_id, 0, "x", 1, (one,)) for one in (first, second)]
    assert merged(*pieces).logprobs == (first, second)


async def collect(source: Source) -> list[tuple[float, Piece]]:
    loop = asyncio.get_running_loop()
    async with aclosing(coalesce(source.events(), MAX_TOKENS, MAX_WAIT_S)) as merged:
        return [(loop.time(), event) async for event in merged if isinstance(event, Piece)]


@given(GAPS)
def test_text_numbers_and_offsets_are_exact(gaps_ms: list[int]) -> None:
    pieces = [piece for _, piece in run_virtually(collect(Source(gaps_ms)))]
    assert "".join(piece.text for piece in pieces) == "".join(f"{n} " for n in range(1, len(gaps_ms) + 1))
    assert pieces[-1].seq == len(gaps_ms)
    assert sum(piece.num_tokens for piece in pieces) == len(gaps_ms)
    offset = 0
    for piece in pieces:
        assert piece.offset == offset
        offset += len(piece.text)


@given(GAPS)
def test_no_token_waits_longer_than_the_window(gaps_ms: list[int]) -> None:
    source = Source(gaps_ms)
    delivered = run_virtually(collect(source))
    assert delivered[0][0] == source.said_at[0]
    assert delivered[0][1].seq == 1
    first = 1
    for at, piece in delivered:
        for number in range(first, piece.seq + 1):
            assert at - source.said_at[number - 1] <= MAX_WAIT_S + 1e-9
        assert piece.num_tokens <= MAX_TOKENS
        first = piece.seq + 1


def test_a_steady_source_is_really_merged() -> None:
    pieces = run_virtually(collect(Source([1] * 40)))
    assert len(pieces) == 1 + 10  # the first alone, then four by four, and the rest at the end


def test_an_event_between_pieces_keeps_its_place() -> None:
    async def source() -> AsyncGenerator[ReplyEvent, None]:
        yield Piece(GENERATION, 1, 0, "a", 1)
        yield Piece(GENERATION, 2, 1, "b", 1)
        yield Waiting(GENERATION, 3)
        yield Piece(GENERATION, 3, 2, "c", 1)

    async def kinds() -> list[str]:
        return [getattr(event, "text", "-") async for event in coalesce(source(), 10, 1.0)]

    assert run_virtually(kinds()) == ["a", "b", "-", "c"]


def test_a_failure_comes_after_the_text_before_it() -> None:
    async def source() -> AsyncGenerator[ReplyEvent, None]:
        yield Piece(GENERATION, 1, 0, "a", 1)
        yield Piece(GENERATION, 2, 1, "b", 1)
        raise ConnectionError

    async def heard() -> list[str]:
        texts = []
        with pytest.raises(ConnectionError):
            async for event in coalesce(source(), 10, 1.0):
                texts.append(getattr(event, "text", ""))
        return texts

    assert run_virtually(heard()) == ["a", "b"]


def test_leaving_closes_the_source() -> None:
    source = Source([0, 0, 0, 100_000])

    async def leave() -> None:
        async with aclosing(coalesce(source.events(), MAX_TOKENS, MAX_WAIT_S)) as merged:
            async for _ in merged:
                return

    run_virtually(leave())
    assert source.is_closed
