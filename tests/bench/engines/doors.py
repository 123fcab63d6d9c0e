"""How each kind of server is spoken to: the same request in its words, and its answer in ours.

One class for each way. All of them ask for exactly so many tokens, with a stop string that never comes.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from inference.client import EngineClient
from inference.errors import EngineError
from inference.types import RAW, Delta, Done, GenerateRequest, Owner, Sampling
from tests.bench.engines.answers import Answer, AnswerBroken, Piece, checked
from tests.bench.engines.asks import STOP, Ask
from tests.bench.engines.stream import Event, post


class Door(Protocol):
    async def answer(self, ask: Ask) -> Answer:
        """Raises AnswerBroken."""
        ...

    async def close(self) -> None: ...


class _Unheld:
    """A door that holds nothing open between requests."""

    async def close(self) -> None:
        pass


@dataclass(frozen=True, slots=True)
class IdsDoor(_Unheld):
    """`/v1/completions` of vLLM, and of whoever takes and gives token ids as it does."""

    url: str
    model: str

    async def answer(self, ask: Ask) -> Answer:
        body = _openai_fields(ask, self.model) | {
            "prompt": ask.ids,
            "top_k": -1,
            "return_token_ids": True,
            "add_special_tokens": False,
        }
        asked_at_s = time.monotonic()
        events = await post(f"{self.url}/v1/completions", body)
        return _openai_answer(ask, asked_at_s, events, _usage(events).get("completion_tokens", 0))


@dataclass(frozen=True, slots=True)
class SiteDoor(_Unheld):
    """`/v1` of the site, which takes words only: whole prompts as completions, conversations as chat."""

    url: str
    model: str
    key: str

    async def answer(self, ask: Ask) -> Answer:
        body = _openai_fields(ask, self.model) | {"cache": {"no-cache": True, "no-store": True}}
        if ask.segments[0].role == RAW:
            path, body["prompt"] = "completions", ask.segments[0].text
        else:
            messages = [{"role": segment.role, "content": segment.text} for segment in ask.segments]
            path, body["messages"] = "chat/completions", messages
        if ask.conversation:
            body["prompt_cache_key"] = ask.conversation
        asked_at_s = time.monotonic()
        events = await post(f"{self.url}/v1/{path}", body, self.key)
        if ask.segments[0].role == RAW:
            _check_prompt(ask, _usage(events).get("prompt_tokens", 0))
        # It counts what has text; that all were made it says by the reason of the end.
        reasons = {choice["finish_reason"] for event in events for choice in event.fields.get("choices", ())}
        return _openai_answer(ask, asked_at_s, events, ask.max_tokens if "length" in reasons else 0)


@dataclass(frozen=True, slots=True)
class LlamaCppDoor(_Unheld):
    """`/completion` of llama.cpp's server."""

    url: str

    async def answer(self, ask: Ask) -> Answer:
        body = {
            "prompt": ask.ids,
            "n_predict": ask.max_tokens,
            "ignore_eos": True,
            "temperature": ask.temperature,
            "top_k": 0,
            "top_p": 1.0,
            "min_p": 0.0,
            "seed": ask.seed,
            "stop": [STOP],
            "stream": True,
            "cache_prompt": True,
            "return_tokens": True,
        }
        asked_at_s = time.monotonic()
        events = await post(f"{self.url}/completion", body)
        made = [event for event in events if event.fields.get("tokens")]
        ids = tuple(token for event in made for token in event.fields["tokens"])
        text = "".join(event.fields.get("content", "") for event in events)
        pieces = tuple(Piece(event.at_s, len(event.fields["tokens"])) for event in made)
        end = events[-1].fields if events else {}
        return checked(
            ask, Answer(asked_at_s, pieces, end.get("tokens_predicted", len(ids)), text, ids), str(end)
        )


@dataclass(frozen=True, slots=True)
class EngineDoor:
    """The engine's own door. One client belongs to one event loop."""

    client: EngineClient

    async def answer(self, ask: Ask) -> Answer:
        sampling = Sampling(
            temperature=ask.temperature,
            top_p=1.0,
            top_k=0,
            min_p=0.0,
            seed=ask.seed,
            stop=(STOP,),
            max_tokens=ask.max_tokens,
            min_tokens=ask.max_tokens,
        )
        owner = Owner("bench", "bench", ask.conversation)
        request = GenerateRequest(str(uuid.uuid4()), ask.segments, owner, sampling)
        deltas: list[Delta] = []
        pieces: list[Piece] = []
        num_prompt, num_tokens, end = 0, 0, ""
        asked_at_s = time.monotonic()
        try:
            async for event in self.client.generate(request):
                if isinstance(event, Delta):
                    deltas.append(event)
                    pieces.append(Piece(time.monotonic(), len(event.token_ids)))
                elif isinstance(event, Done):
                    num_prompt = event.usage.prompt_tokens
                    # Control tokens have no text, and the last ones may be no whole character.
                    num_tokens = event.usage.generated_tokens + event.usage.unseen_tokens
                    end = f"{event.finish_reason} {event.error_message}"
        except EngineError as error:
            raise AnswerBroken(f"{error.code}: {error}") from error
        _check_prompt(ask, num_prompt)
        ids = tuple(token for delta in deltas for token in delta.token_ids)
        text = "".join(delta.text for delta in deltas)
        return checked(ask, Answer(asked_at_s, tuple(pieces), num_tokens, text, ids), end)

    async def close(self) -> None:
        await self.client.close()


def _check_prompt(ask: Ask, num_tokens: int) -> None:
    """Raises AnswerBroken where the words did not become the ids that others were asked with."""
    if num_tokens != len(ask.ids):
        raise AnswerBroken(f"the prompt of {len(ask.ids)} tokens became one of {num_tokens}")


def _usage(events: Sequence[Event]) -> dict[str, int]:
    return next((event.fields["usage"] for event in events if event.fields.get("usage")), {})


def _openai_fields(ask: Ask, model: str) -> dict[str, Any]:
    return {
        "model": model,
        "max_tokens": ask.max_tokens,
        "min_tokens": ask.max_tokens,
        "temperature": ask.temperature,
        "top_p": 1.0,
        "seed": ask.seed,
        "stop": [STOP],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def _openai_answer(ask: Ask, asked_at_s: float, events: Sequence[Event], num_tokens: int) -> Answer:
    choices = [(event.at_s, choice) for event in events for choice in event.fields.get("choices", ())]
    parts = [(at_s, _text_of(choice), choice.get("token_ids") or []) for at_s, choice in choices]
    pieces = tuple(Piece(at_s, len(ids) or 1) for at_s, text, ids in parts if text or ids)
    text = "".join(text for _, text, _ in parts)
    ids = tuple(token for _, _, ids in parts for token in ids)
    answer = Answer(asked_at_s, pieces, num_tokens, text, ids)
    return checked(ask, answer, str(events[-1].fields if events else ""))


def _text_of(choice: dict[str, Any]) -> str:
    return str(choice.get("text") or choice.get("delta", {}).get("content") or "")
