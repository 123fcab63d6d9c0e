"""From a request to a generation that waits in the core, or to a refusal.

Knows the order of checks: cheap ones first, and again after the prompt was encoded, because the world may have
changed meanwhile. Does not know what happens to a generation afterwards (`front.engine`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from inference.config import EngineConfig
from inference.core.messages import Admit, CoreReady
from inference.errors import InvalidRequest, ModelLoading, RequestRefused
from inference.front import admission, sampling
from inference.front.archive import Archive
from inference.front.background import PREFIXES
from inference.front.core_process import CoreLink
from inference.front.counters import Counters
from inference.front.generation import CANCELLED, Clock, Generation, GenerationLimits, State
from inference.front.model import ServedModel
from inference.front.ownership import OwnerKeys
from inference.front.prompts import Prompt
from inference.types import GenerateRequest, Segment

# Longer prompts are encoded in a thread: the loop must go on delivering.
MAX_INLINE_CHARACTERS = 16_384
MAX_ID_CHARACTERS = 64


@dataclass(frozen=True, slots=True)
class Parts:
    """What a front is made of, shared by those who take requests in and those who hand tokens out."""

    config: EngineConfig
    model: ServedModel
    archive: Archive
    counters: Counters
    core: CoreLink
    keys: OwnerKeys
    clock: Clock


class Intake:
    """`loaded` gives the core's facts, or raises ModelLoading while there is no core."""

    def __init__(self, parts: Parts, loaded: Callable[[], CoreReady]) -> None:
        self._parts = parts
        self._loaded = loaded
        self._submitting: dict[str, asyncio.Future[int]] = {}
        self._cancelled_early: set[str] = set()
        self._seconds_per_request = admission.FALLBACK_REQUEST_S

    async def submit(self, request: GenerateRequest) -> int:
        """Prompt tokens. Accepts once per generation_id; the same id again gets the same. Raises RequestRefused."""
        _check_id(request.generation_id)
        known = self._parts.archive.find(request.generation_id)
        if known is not None:
            return known.prompt_tokens
        first = self._submitting.get(request.generation_id)
        if first is not None:
            return await asyncio.shield(first)
        return await self._submit_first(request)

    async def check(self, request: GenerateRequest) -> None:
        """Raises what `submit` would, whatever waits at the moment; starts nothing."""
        _check_id(request.generation_id)
        sampling.resolve(request.sampling, self._parts.model.defaults, self._parts.model.tokenizer.knows)
        self._parts.keys.conversation(request.owner)
        prompt = await self.prompt(request.segments)
        admission.check_context(self.limits(), len(prompt.ids))

    def cancel_early(self, generation_id: str) -> bool:
        """True when that id is being submitted now: it will end as cancelled without having run."""
        if generation_id not in self._submitting:
            return False
        self._cancelled_early.add(generation_id)
        return True

    async def prompt(self, segments: Sequence[Segment], *, add_generation_prompt: bool = True) -> Prompt:
        build = self._parts.model.prompts.build
        if sum(len(segment.text) for segment in segments) <= MAX_INLINE_CHARACTERS:
            prompt = build(segments, add_generation_prompt=add_generation_prompt)
        else:
            prompt = await asyncio.to_thread(build, segments, add_generation_prompt=add_generation_prompt)
        self._parts.counters.ledger_fallbacks += prompt.num_fallbacks
        return prompt

    def limits(self) -> admission.Limits:
        """Raises ModelLoading while there is no core."""
        config, longest = self._parts.config, self._loaded().max_context
        return admission.Limits(
            max_queue=config.max_queue,
            max_queued_tokens=config.max_queued_tokens,
            max_batch=config.max_batch,
            max_output_tokens=config.max_output_tokens,
            max_context=min(config.max_context, longest) if config.max_context else longest,
        )

    def on_finished(self, generation: Generation) -> None:
        """Keeps a moving average of what a request takes, for the time that refusals name."""
        took_s = generation.ended_at - generation.accepted_at
        self._seconds_per_request += 0.1 * (took_s - self._seconds_per_request)

    async def _submit_first(self, request: GenerateRequest) -> int:
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._submitting[request.generation_id] = future
        try:
            prompt_tokens = await self._accept(request)
        except BaseException as error:
            self._parts.counters.refused += isinstance(error, RequestRefused)
            is_ours = isinstance(error, Exception)
            future.set_exception(error if is_ours else ModelLoading("the first submit was given up"))
            future.exception()  # seen: there may be nobody else who waits for it
            raise
        finally:
            del self._submitting[request.generation_id]
            self._cancelled_early.discard(request.generation_id)
        future.set_result(prompt_tokens)
        return prompt_tokens

    async def _accept(self, request: GenerateRequest) -> int:
        parts, limits = self._parts, self.limits()
        spec = sampling.resolve(request.sampling, parts.model.defaults, parts.model.tokenizer.knows)
        salt, conversation = parts.keys.salt(request.owner), parts.keys.conversation(request.owner)
        self._check(limits, admission.estimate_tokens(sum(len(segment.text) for segment in request.segments)))
        prompt = await self.prompt(request.segments)
        limits = self.limits()  # the core may have been lost meanwhile
        self._check(limits, len(prompt.ids))
        generation = self._new_generation(request, len(prompt.ids))
        admit = Admit(
            id=request.generation_id,
            prompt_ids=prompt.ids,
            sampling=spec,
            max_tokens=admission.answer_tokens(limits, len(prompt.ids), request.sampling.max_tokens),
            stop_ids=sorted(generation.stop_ids),
            salt=salt,
            conversation=conversation,
            priority=request.priority,
            is_offline=request.is_offline,
        )
        parts.archive.add(generation)
        if request.generation_id in self._cancelled_early:
            generation.abandon(CANCELLED)
            parts.archive.settle(generation)
        else:
            parts.core.send(admit)
        return len(prompt.ids)

    def _check(self, limits: admission.Limits, prompt_tokens: int) -> None:
        admission.check_context(limits, prompt_tokens)
        admission.check_queue(limits, self._load(), prompt_tokens)

    def _load(self) -> admission.Load:
        archive = self._parts.archive
        queued = [generation for generation in archive.live() if generation.state is State.QUEUED]
        return admission.Load(
            num_queued=len(queued),
            num_running=archive.num_live - len(queued),
            queued_tokens=sum(generation.prompt_tokens for generation in queued),
            seconds_per_request=self._seconds_per_request,
        )

    def _new_generation(self, request: GenerateRequest, prompt_tokens: int) -> Generation:
        config, model = self._parts.config, self._parts.model
        longest_s = config.deadline_s
        limits = GenerationLimits(
            stops=request.sampling.stop,
            stop_ids=model.stop_ids.union(request.sampling.stop_ids),
            min_tokens=request.sampling.min_tokens or 0,
            repetition_tokens=config.repetition_tokens,
            deadline_s=min(request.deadline_s, longest_s) if request.deadline_s > 0 else longest_s,
            max_log_bytes=config.log_max_bytes,
            wants_logprobs=request.sampling.logprobs is not None,
        )
        return Generation(
            request.generation_id, prompt_tokens, limits, tokenizer=model.tokenizer, clock=self._parts.clock
        )


def _check_id(generation_id: str) -> None:
    is_ours = generation_id.startswith(PREFIXES)
    if not 1 <= len(generation_id) <= MAX_ID_CHARACTERS or is_ours:
        raise InvalidRequest(f"a generation id is a UUID, not {generation_id[:MAX_ID_CHARACTERS]!r}")
