"""One answer of the upstream: asked for, waited for while there is no room, read to its end.

Knows which failures are worth another try: those before the first token. Does not know queues (`generations`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from inference.core.messages import Admit, TokenOut
from inference.front.tokenizer import Tokenizer
from inference.gateway.errors import Broken, Busy, Refused, Unreachable
from inference.gateway.request import NEUTRAL_FIELDS, Dialect, body_of, headers_of
from inference.gateway.spelling import Speller
from inference.gateway.upstream import Upstream
from inference.gateway.wire import Choice, Chunk, Logprobs
from inference.types import FinishReason

log = logging.getLogger(__name__)

FIRST_WAIT_S, MAX_WAIT_S = 0.5, 30.0
LAST_WORD_S = 5.0  # from the last token to the figures and the end of the stream
MIN_WAIT_S = 0.05  # "at once" from a full upstream is no invitation to ask without a pause
# A restart of one machine behind a router is over by then; a longer absence is told to the caller.
MAX_CONNECTS = 4
ID_PREFIX = "token_id:"  # how ids are written where the API has room for text only

# "abort" and "error" are none of these: the upstream gave up, and the answer has failed.
_REASONS = {
    "stop": FinishReason.STOP,
    "length": FinishReason.LENGTH,
    "repetition": FinishReason.REPETITION,
    "content_filter": FinishReason.STOP,
}

Take = Callable[[list[TokenOut]], None]


@dataclass(frozen=True, slots=True)
class Ending:
    reason: FinishReason
    cached_tokens: int | None  # prompt tokens that the upstream did not compute again; None: it does not say


@dataclass(frozen=True, slots=True)
class Completions:
    """Asks one upstream in its dialect."""

    upstream: Upstream
    dialect: Dialect
    load_tokenizer: Callable[[], Tokenizer]
    session_header: str
    sleep: Callable[[float], Any] = asyncio.sleep

    async def run(self, admit: Admit, take: Take) -> Ending:
        """Calls `take` for every chunk with news; tries again while nothing was taken and it may help.

        Raises UpstreamError.
        """
        body = body_of(admit, self.dialect, self.load_tokenizer)
        headers = headers_of(admit, self.session_header)
        wait_s, num_connects = FIRST_WAIT_S, 0
        while True:
            reader = _Reader(admit, self.dialect, self.load_tokenizer, take)
            try:
                return await self._read(body, headers, reader)
            except Refused as refusal:
                if not any(field in body for field in NEUTRAL_FIELDS):
                    raise
                log.warning("%s; asking once more without %s", refusal, ", ".join(NEUTRAL_FIELDS))
                body = {name: value for name, value in body.items() if name not in NEUTRAL_FIELDS}
                continue
            except Busy as busy:
                wanted_s = busy.retry_after_s
            except Unreachable:
                num_connects += 1
                if num_connects == MAX_CONNECTS:
                    raise
                wanted_s = None
            await self.sleep(min(MAX_WAIT_S, wait_s if wanted_s is None else max(MIN_WAIT_S, wanted_s)))
            wait_s *= 2

    async def _read(self, body: dict[str, Any], headers: dict[str, str], reader: _Reader) -> Ending:
        """Up to the end of the stream, which is not waited for long, and may fail, once the answer is complete."""
        try:
            async with (
                asyncio.timeout(None) as limit,
                aclosing(self.upstream.complete(body, headers)) as chunks,  # type: ignore[type-var]
            ):
                async for chunk in chunks:
                    reader.read(chunk)
                    if reader.is_over:
                        break
                    if reader.finish_reason and limit.when() is None:
                        limit.reschedule(asyncio.get_running_loop().time() + LAST_WORD_S)
        except (Broken, TimeoutError):
            if not reader.finish_reason:
                raise
        return reader.ending()


@dataclass(slots=True)
class _Reader:
    """The chunks of one answer, turned into tokens."""

    admit: Admit
    dialect: Dialect
    load_tokenizer: Callable[[], Tokenizer]
    take: Take
    finish_reason: str = ""
    cached_tokens: int | None = None
    num_tokens: int = 0
    is_over: bool = False  # it goes on past the number of tokens that it was asked for
    speller: Speller | None = field(default=None)

    def read(self, chunk: Chunk) -> None:
        if chunk.usage is not None and chunk.usage.cached_tokens is not None:
            self.cached_tokens = chunk.usage.cached_tokens
        for choice in chunk.choices:
            if tokens := self._within_bounds(self._tokens(choice)):
                self.take(tokens)
            self.finish_reason = choice.finish_reason or self.finish_reason
            if self.is_over:
                self.finish_reason = FinishReason.LENGTH

    def ending(self) -> Ending:
        if not self.finish_reason:
            raise Broken("the connection to the upstream was lost in mid-answer")
        if self.finish_reason not in _REASONS:
            raise Broken(f"the upstream gave up: {self.finish_reason}")
        return Ending(_REASONS[self.finish_reason], self.cached_tokens)

    def _within_bounds(self, tokens: list[TokenOut]) -> list[TokenOut]:
        """Ids are the upstream's and were counted by it; text may be more of our ids than it counted."""
        num_left = max(1, self.admit.max_tokens) - self.num_tokens
        self.num_tokens += len(tokens)
        self.is_over = self.dialect.gives_ids and len(tokens) > num_left
        return tokens[:num_left] if self.is_over else tokens

    def _tokens(self, choice: Choice) -> list[TokenOut]:
        if self.dialect.gives_ids:
            if choice.token_ids is None and choice.text:
                raise Broken("the upstream gave text without token ids")
            return _with_logprobs(self.admit, choice.token_ids or [], choice.logprobs)
        if self.speller is None:
            self.speller = Speller(self.load_tokenizer())
        return [TokenOut(self.admit.id, token) for token in self.speller.ids_of(choice.text)]


def _with_logprobs(admit: Admit, ids: list[int], logprobs: Logprobs | None) -> list[TokenOut]:
    if admit.sampling.logprobs < 0 or logprobs is None:
        return [TokenOut(admit.id, token) for token in ids]
    own, tops = logprobs.token_logprobs, logprobs.top_logprobs or [None] * len(ids)
    if len(own) != len(ids) or len(tops) != len(ids):
        raise Broken("the upstream gave logprobs for other tokens than it made")
    return [
        TokenOut(admit.id, token, value or 0.0, _alternatives(top or {}, admit.sampling.logprobs))
        for token, value, top in zip(ids, own, tops, strict=True)
    ]


def _alternatives(top: dict[str, float], num_wanted: int) -> list[tuple[int, float]]:
    """The likeliest first. vLLM adds the sampled token to those that were asked for."""
    named = [
        (int(name.removeprefix(ID_PREFIX)), value)
        for name, value in top.items()
        if name.startswith(ID_PREFIX) and name.removeprefix(ID_PREFIX).isdigit()
    ]
    return sorted(named, key=lambda pair: -pair[1])[:num_wanted]
