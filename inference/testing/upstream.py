"""A fake of vLLM's OpenAI-compatible server: scripts in, tokens out, everything that was asked for on record.

    python -m inference.testing.upstream [--port 8000] [--no-token-ids] [--text-only] [--strict]

Knows the fields and answers of /v1/completions, /v1/models and /metrics that the gateway uses, prefix reuse by salt,
and the ways an upstream can go wrong. What an answer does is asked for in the user's message: see `script`.
"""

from __future__ import annotations

import argparse
import asyncio
import codecs
import json
import sys
from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from inference.testing.http import HttpAnswer, HttpRequest, HttpServer
from inference.testing.script import Plan, plan_for, script_text
from inference.testing.tokenizer import END_OF_TURN, ByteTokenizer, bytes_of

MODEL = "scripted-upstream"
MAX_MODEL_LEN = 8192
BLOCK_TOKENS = 16
BLOCKS_TOTAL = 4096
LOGPROB = -0.5
OPENAI_FIELDS = frozenset(
    {
        "model", "prompt", "max_tokens", "temperature", "top_p", "presence_penalty", "frequency_penalty", "seed",
        "logit_bias", "logprobs", "stream", "stream_options", "stop", "n", "user",
    }
)  # fmt: skip

Body = dict[str, Any]


@dataclass(slots=True)
class Behaviour:
    """How this upstream differs from a healthy vLLM; may be changed while it runs."""

    gives_ids: bool = True
    takes_ids: bool = True
    known_fields: frozenset[str] | None = (
        None  # None: unknown ones are ignored, as vLLM does; else they are 400
    )
    refused_fields: frozenset[str] = frozenset()
    key: str = ""
    tells_cached: bool = True  # vLLM: --enable-prompt-tokens-details
    has_metrics: bool = True
    holds_schemas: bool = (
        True  # where a schema leaves one value, that is the answer; others a script may break
    )
    reads_grammars: bool = True  # rules in Lark with `%json`, as vLLM does
    models: tuple[str, ...] = (MODEL,)
    max_model_len: int | None = MAX_MODEL_LEN
    fail_with: list[HttpAnswer] = field(default_factory=list)  # given to the next completions, one each


@dataclass(frozen=True, slots=True)
class Received:
    """One completion as it was asked for."""

    body: Body
    headers: dict[str, str]


class FakeUpstream:
    """`received` holds what was asked for; `num_hung_up` counts answers whose client went away."""

    def __init__(self, behaviour: Behaviour | None = None) -> None:
        self.behaviour = behaviour or Behaviour()
        self.received: list[Received] = []
        self.running = 0
        self.num_hung_up = 0
        self.hit_tokens = self.query_tokens = self.num_preemptions = 0
        self._prefixes: dict[str, list[list[int]]] = {}
        self._server = HttpServer(self._answer)

    @property
    def url(self) -> str:
        return self._server.url

    async def start(self, port: int = 0) -> None:
        await self._server.start(port)

    async def stop(self) -> None:
        await self._server.stop()

    async def _answer(self, request: HttpRequest) -> HttpAnswer:
        if request.path == "/metrics" and self.behaviour.has_metrics:
            return HttpAnswer(body=self._metrics().encode())
        if request.path.startswith("/v1") and not self._is_known(request):
            return refusal(401, "invalid key")
        if request.path == "/v1/models":
            return HttpAnswer(body=json.dumps({"object": "list", "data": self._models()}).encode())
        if request.path == "/v1/completions" and request.method == "POST":
            return self._complete(request)
        return refusal(404, "not found")

    def _is_known(self, request: HttpRequest) -> bool:
        key = self.behaviour.key
        return not key or request.headers.get("authorization") == f"Bearer {key}"

    def _models(self) -> list[Body]:
        longest = self.behaviour.max_model_len
        return [{"id": name, "object": "model", "max_model_len": longest} for name in self.behaviour.models]

    def _complete(self, request: HttpRequest) -> HttpAnswer:
        body = json.loads(request.body)
        self.received.append(Received(body, dict(request.headers)))
        if self.behaviour.fail_with:
            return self.behaviour.fail_with.pop(0)
        if objection := self._objection(body):
            return refusal(400, objection)
        ids = body["prompt"] if isinstance(body["prompt"], list) else encode(body["prompt"])
        plan = self._held(body) or plan_for(ids)
        if plan.error:
            return refusal(400, plan.error)
        return HttpAnswer(events=self._play(plan, ids, body))

    def _held(self, body: Body) -> Plan | None:
        """The one answer that the schema leaves."""
        asked = (body.get("response_format") or {}).get("json_schema") or {}
        schema = asked.get("schema", {})
        _, is_text, schema_in_text = (
            (body.get("structured_outputs") or {}).get("grammar", "").partition("%json")
        )
        if is_text and self.behaviour.reads_grammars:
            schema, _ = json.JSONDecoder().raw_decode(schema_in_text.strip())
        values = schema.get("enum", [])
        if not self.behaviour.holds_schemas or len(values) != 1:
            return None
        return plan_for(list(script_text(text=json.dumps(values[0])).encode()))

    def _objection(self, body: Body) -> str:
        behaviour = self.behaviour
        if body["model"] not in behaviour.models:
            return f"the model {body['model']} does not exist"
        if isinstance(body["prompt"], list) and not behaviour.takes_ids:
            return "prompt must be a string"
        known = set(body) if behaviour.known_fields is None else behaviour.known_fields
        unknown = sorted((set(body) - known) | (set(body) & behaviour.refused_fields))
        return f"unknown fields: {', '.join(unknown)}" if unknown else ""

    async def _play(self, plan: Plan, ids: list[int], body: Body) -> AsyncGenerator[str]:
        """The events of one answer. Tokens past max_tokens are never made, as in a real engine."""
        self.running += 1
        is_complete = False
        try:
            cached = self._reuse(body.get("cache_salt", ""), ids)
            async for choice in _choices(plan, body, gives_ids=self.behaviour.gives_ids):
                # Like vLLM, which leaves every character as it is, also those that Unicode counts as line ends.
                yield json.dumps({"object": "text_completion", "choices": [choice]}, ensure_ascii=False)
            usage: Body = {"prompt_tokens": len(ids)}
            if self.behaviour.tells_cached:
                usage["prompt_tokens_details"] = {"cached_tokens": cached}
            if (body.get("stream_options") or {}).get("include_usage"):
                yield json.dumps({"object": "text_completion", "choices": [], "usage": usage})
            yield "[DONE]"
            is_complete = True
        except ScriptedError as error:
            is_complete = True
            yield json.dumps({"error": {"message": str(error), "type": "InternalServerError", "code": 500}})
            yield "[DONE]"
        finally:
            self.running -= 1
            self.num_hung_up += not is_complete

    def _reuse(self, salt: str, ids: list[int]) -> int:
        """Whole blocks of prompt tokens that a prompt with this salt has had before; the last token is always read."""
        known = self._prefixes.setdefault(salt, [])
        shared = max((_common_prefix(prefix, ids[:-1]) for prefix in known), default=0)
        cached = shared - shared % BLOCK_TOKENS
        known.append(ids)
        self.hit_tokens += cached
        self.query_tokens += len(ids)
        return cached

    def _metrics(self) -> str:
        label = f'{{engine="0",model_name="{MODEL}"}}'
        config = f'{{block_size="{BLOCK_TOKENS}",engine="0",num_gpu_blocks="{BLOCKS_TOTAL}"}}'
        values = {
            f"vllm:num_requests_running{label}": self.running,
            f"vllm:num_requests_waiting{label}": 0,
            f"vllm:kv_cache_usage_perc{label}": self.running * 16 / BLOCKS_TOTAL,
            f"vllm:prefix_cache_queries_total{label}": self.query_tokens,
            f"vllm:prefix_cache_hits_total{label}": self.hit_tokens,
            f"vllm:num_preemptions_total{label}": self.num_preemptions,
            f"vllm:cache_config_info{config}": 1,
            f'vllm:request_success_total{{finished_reason="stop",model_name="{MODEL}"}}': 1,
        }
        return "".join(f"{name} {float(value)}\n" for name, value in values.items())


class ScriptedError(Exception):
    """The engine behind the server failed in mid-answer."""


def refusal(status: int, message: str, **headers: str) -> HttpAnswer:
    """In vLLM's form."""
    body = {"error": {"message": message, "type": "BadRequestError", "param": None, "code": status}}
    return HttpAnswer(status, json.dumps(body).encode(), headers)


def encode(prompt: str) -> list[int]:
    """Like a server that reads text: names of control tokens become control tokens, whoever wrote them."""
    tokenizer, ids, done = ByteTokenizer(), [], 0
    for match in tokenizer.control_pattern.finditer(prompt):
        ids += [
            *tokenizer.encode_plain(prompt[done : match.start()]),
            tokenizer.control_id(match.group()),
        ]
        done = match.end()
    return ids + tokenizer.encode_plain(prompt[done:])


async def _choices(plan: Plan, body: Body, *, gives_ids: bool) -> AsyncGenerator[Body]:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    ids_are_wanted = gives_ids and body.get("return_token_ids")
    num, script = 0, plan.script
    await asyncio.sleep(script.first_delay_ms / 1000)
    for step in plan.steps:
        if num:
            await asyncio.sleep(script.delay_ms / 1000)
        await _misbehave(plan, num)
        ids = list(step[: body["max_tokens"] - num])
        num += len(ids)
        is_full = num >= body["max_tokens"]
        text = decoder.decode(b"".join(map(bytes_of, ids)), final=is_full)
        choice = {"index": 0, "text": text, "finish_reason": "length" if is_full else None}
        yield choice | ({"token_ids": ids} if ids_are_wanted else {}) | _logprobs(ids, body)
        if is_full:
            return
    await _misbehave(plan, num)
    end = {"index": 0, "text": decoder.decode(b"", final=True), "finish_reason": script.finish}
    yield end | ({"token_ids": [END_OF_TURN]} if ids_are_wanted else {}) | _logprobs([END_OF_TURN], body)


async def _misbehave(plan: Plan, num: int) -> None:
    script = plan.script
    if script.fail_after is not None and num >= script.fail_after:
        raise ScriptedError("scripted failure")
    if script.die_after is not None and num >= script.die_after:
        raise ConnectionResetError
    if script.hang_after is not None and num >= script.hang_after:
        await asyncio.sleep(1e6)
    if script.stall_after is not None and num == script.stall_after:
        await asyncio.sleep(script.stall_ms / 1000)


def _logprobs(ids: list[int], body: Body) -> Body:
    if body.get("logprobs") is None:
        return {}
    as_ids = body.get("return_tokens_as_token_ids")
    names = [f"token_id:{token}" if as_ids else bytes_of(token).decode("utf-8", "replace") for token in ids]
    return {
        "logprobs": {
            "tokens": names,
            "token_logprobs": [LOGPROB] * len(ids),
            "top_logprobs": [{name: LOGPROB} for name in names],
        }
    }


def _common_prefix(first: list[int], second: list[int]) -> int:
    pairs = zip(first, second, strict=False)
    return next(
        (num for num, (left, right) in enumerate(pairs) if left != right), min(len(first), len(second))
    )


async def serve(behaviour: Behaviour, port: int) -> None:
    upstream = FakeUpstream(behaviour)
    await upstream.start(port)
    print(f"listening on {upstream.url}", flush=True)
    await asyncio.Event().wait()


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m inference.testing.upstream", description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--no-token-ids", action="store_true", help="answers are text only")
    parser.add_argument("--text-only", action="store_true", help="prompts are text only")
    parser.add_argument("--strict", action="store_true", help="fields that OpenAI does not have are refused")
    options = parser.parse_args(argv)
    behaviour = Behaviour(
        gives_ids=not options.no_token_ids,
        takes_ids=not options.text_only,
        known_fields=OPENAI_FIELDS if options.strict else None,
    )
    with suppress(KeyboardInterrupt):
        asyncio.run(serve(behaviour, options.port))
    return 0


if __name__ == "__main__":
    sys.exit(main())
