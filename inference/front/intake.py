"""From a request to a generation that waits in the core, or to a refusal.

Knows the order of checks: cheap ones first, and again after the prompt was encoded, because the world may have
changed meanwhile. Does not know what happens to a generation afterwards (`front.engine`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
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
from inference.front.grammars import Grammars
from inference.front.model import ServedModel
from inference.front.offers import Offers
from inference.front.ownership import OwnerKeys
from inference.front.trimming import Build, Fitted, Trimmer, least_kept, room_for
from inference.types import GenerateRequest, Segment, Submitted

# Longer prompts are encoded in a thread: the loop must go on delivering.
MAX_INLINE_CHARACTERS = 16_384
MAX_ID_CHARACTERS = 64


@dataclass(frozen=True, slots=True)
class Parts:
    """What a front is made of, shared by those who take requests in and those who hand tokens out."""

    engine: str  # instance id
    config: EngineConfig
    model: ServedModel
    archive: Archive
    counters: Counters
    core: CoreLink
    keys: OwnerKeys
    clock: Clock
    offers: Offers
    grammars: Grammars


class Intake:
    """`loaded` gives the core's facts, or raises ModelLoading while there is no core."""

    def __init__(self, parts: Parts, loaded: Callable[[], CoreReady]) -> None:
        self._parts = parts
        self._loaded = loaded
        self._trimmer = Trimmer(parts.model.prompts.build, parts.model.tokenizer)
        self._submitting: dict[str, asyncio.Future[Submitted]] = {}
        self._encoding: dict[str, int] = {}  # estimated tokens of prompts that are being made
        self._cancelled_early: set[str] = set()
        self._seconds_per_request = admission.FALLBACK_REQUEST_S

    async def submit(self, request: GenerateRequest) -> Submitted:
        """Accepts once per generation_id; the same id again gets the same. Raises RequestRefused."""
        _check_id(request.generation_id)
        known = self._parts.archive.find(request.generation_id)
        if known is not None:
            return self._submitted(known)
        first = self._submitting.get(request.generation_id)
        if first is not None:
            return await asyncio.shield(first)
        return await self._submit_first(request)

    async def check(self, request: GenerateRequest) -> None:
        """Raises what `submit` would, whatever waits at the moment; starts nothing."""
        _check_id(request.generation_id)
        request = self._offered(request)
        sampling.resolve(request.sampling, self._parts.model.defaults, self._parts.model.tokenizer.knows)
        self._parts.keys.conversation(request.owner)
        fitted = await self._fitted_to(request, self._estimate(request, self.limits()))
        admission.check_context(self.limits(), len(fitted.prompt.ids))

    def cancel_early(self, generation_id: str) -> bool:
        """True when that id is being submitted now: it will end as cancelled without having run."""
        if generation_id not in self._submitting:
            return False
        self._cancelled_early.add(generation_id)
        return True

    async def fit(
        self,
        segments: Sequence[Segment],
        asked: int | None = None,
        *,
        tools: str = "",
        add_generation_prompt: bool = True,
        build: Build | None = None,
    ) -> Fitted:
        """The prompt of a history that may be trimmed, with room for an answer of `asked` tokens."""
        room = room_for(self.limits().max_context, asked)

        def fit() -> Fitted:
            return self._trimmer.fit(
                segments, room, tools=tools, add_generation_prompt=add_generation_prompt, build=build
            )

        return await self._counting_fallbacks(fit, segments, tools)

    def limits(self) -> admission.Limits:
        """Raises ModelLoading while there is no core."""
        config, core = self._parts.config, self._loaded()
        # What a pool can't hold even when it is empty would wait in it for ever.
        longest = min(core.max_context, core.blocks_total * core.block_tokens or core.max_context)
        return admission.Limits(
            max_queue=config.max_queue,
            max_queued_tokens=config.max_queued_tokens,
            max_batch=config.max_batch,
            max_output_tokens=config.max_output_tokens,
            max_context=min(config.max_context, longest) if config.max_context else longest,
            target_ttft_s=config.target_ttft_s,
            prefill_tokens_per_s=self._parts.counters.core.prefill_tokens_per_s,
        )

    def on_finished(self, generation: Generation) -> None:
        """Keeps a moving average of what a request takes once it runs, for the time that refusals name."""
        if not generation.started_at:
            return
        took_s = generation.ended_at - generation.started_at
        self._seconds_per_request += 0.1 * (took_s - self._seconds_per_request)

    async def _submit_first(self, request: GenerateRequest) -> Submitted:
        future: asyncio.Future[Submitted] = asyncio.get_running_loop().create_future()
        self._submitting[request.generation_id] = future
        try:
            generation = await self._accept(request)
        except BaseException as error:
            self._parts.counters.refused += isinstance(error, RequestRefused)
            is_ours = isinstance(error, Exception)
            future.set_exception(error if is_ours else ModelLoading("the first submit was given up"))
            future.exception()  # seen: there may be nobody else who waits for it
            raise
        finally:
            del self._submitting[request.generation_id]
            self._cancelled_early.discard(request.generation_id)
        future.set_result(self._submitted(generation))
        return future.result()

    async def _accept(self, request: GenerateRequest) -> Generation:
        parts, limits = self._parts, self.limits()
        request = self._offered(request)
        spec = sampling.resolve(request.sampling, parts.model.defaults, parts.model.tokenizer.knows)
        salt, conversation = parts.keys.salt(request.owner), parts.keys.conversation(request.owner)
        estimate = self._estimate(request, limits)
        admission.check_queue(limits, self._load(self._encoding.values()), estimate)
        fitted = await self._fitted_to(request, estimate)
        ids, limits = fitted.prompt.ids, self.limits()  # the core may have been lost meanwhile
        admission.check_context(limits, len(ids))
        admission.check_queue(limits, self._load(), len(ids))
        generation = self._new_generation(request, fitted)
        admit = Admit(
            id=request.generation_id,
            prompt_ids=ids,
            sampling=spec,
            max_tokens=admission.answer_tokens(limits, len(ids), request.sampling.max_tokens),
            stop_ids=sorted(generation.stop_ids),
            salt=salt,
            conversation=conversation,
            priority=request.priority,
            is_offline=request.is_offline,
        )
        parts.archive.add(generation)
        parts.counters.trimmed_requests += fitted.trimmed_messages > 0
        if request.generation_id in self._cancelled_early:
            generation.abandon(CANCELLED)
            parts.archive.settle(generation)
        else:
            parts.core.send(admit)
        return generation

    def _offered(self, request: GenerateRequest) -> GenerateRequest:
        """With its functions as the template takes them. What an upstream makes of grammars with tokens in them is its
        own matter: strict functions are held by our own core only. Raises RequestRefused."""
        can_hold = self._loaded().has_grammar and not self._parts.config.upstream
        return self._parts.offers.applied(request, can_hold=can_hold)

    def _estimate(self, request: GenerateRequest, limits: admission.Limits) -> int:
        """Prompt tokens that there will be at least. Raises ContextLengthExceeded for too many."""
        kept = least_kept(request.segments) if request.may_trim else request.segments
        num_tokens = admission.estimate_tokens([*kept, Segment("system", request.tools)])
        admission.check_context(limits, num_tokens, is_estimate=True)
        return num_tokens

    async def _fitted_to(self, request: GenerateRequest, estimate: int) -> Fitted:
        """The prompt, once the answer's grammar was found good. Raises InvalidGrammar.

        Meanwhile the request counts as one that waits: a burst must not fill the threads that encode.
        """
        segments, tools = request.segments, request.tools
        prompts = self._parts.model.prompts
        build = prompts.go_on if request.continues_answer else prompts.build
        self._encoding[request.generation_id] = estimate
        try:
            await self._parts.grammars.check(request.sampling.grammar, self._loaded())
            if request.may_trim:
                return await self.fit(segments, request.sampling.max_tokens, tools=tools, build=build)
            return await self._counting_fallbacks(
                lambda: Fitted(build(segments, tools=tools), segments), segments, tools
            )
        finally:
            self._encoding.pop(request.generation_id, None)

    async def _counting_fallbacks(
        self, work: Callable[[], Fitted], segments: Sequence[Segment], tools: str
    ) -> Fitted:
        num_characters = sum(len(segment.text) + len(segment.tool_calls) for segment in segments) + len(tools)
        is_short = num_characters <= MAX_INLINE_CHARACTERS
        fitted = work() if is_short else await asyncio.to_thread(work)
        self._parts.counters.ledger_fallbacks += fitted.prompt.num_fallbacks
        return fitted

    def _submitted(self, generation: Generation) -> Submitted:
        return Submitted(
            self._parts.engine,
            generation.prompt_tokens,
            generation.trimmed_messages,
            max(0, admission.num_waiting(self._parts.config.max_batch, self._load())),
        )

    def _load(self, encoding: Collection[int] = ()) -> admission.Load:
        archive = self._parts.archive
        live = list(archive.live())
        num_queued = sum(generation.state is State.QUEUED for generation in live)
        return admission.Load(
            num_queued=num_queued + len(encoding),
            num_running=len(live) - num_queued,
            queued_tokens=sum(encoding)
            + sum(generation.unread_tokens for generation in live if not generation.ending),
            seconds_per_request=self._seconds_per_request,
        )

    def _new_generation(self, request: GenerateRequest, fitted: Fitted) -> Generation:
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
            shown_ids=self._parts.offers.mark_ids() if request.tools else frozenset(),
            begun_ids=tuple(fitted.prompt.ids) if request.continues_answer else (),
        )
        generation = Generation(
            request.generation_id,
            len(fitted.prompt.ids),
            limits,
            tokenizer=model.tokenizer,
            clock=self._parts.clock,
            trimmed_messages=fitted.trimmed_messages,
        )
        generation.owner = request.owner
        return generation


def _check_id(generation_id: str) -> None:
    is_ours = generation_id.startswith(PREFIXES)
    if not 1 <= len(generation_id) <= MAX_ID_CHARACTERS or is_ours:
        raise InvalidRequest(f"a generation id is a UUID, not {generation_id[:MAX_ID_CHARACTERS]!r}")
