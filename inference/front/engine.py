"""The front's middle: requests on one side, the core on the other, generations between them.

Knows the order of things: refuse or admit, hand tokens to generations, end them in every case. Does not know
gRPC (`front.server`), text (`front.generation`, `front.prompts`) or processes (`front.core_process`).
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections import deque
from collections.abc import Sequence
from dataclasses import replace

from inference.config import EngineConfig
from inference.core.messages import (
    CoreReady,
    CoreStats,
    DeclaredPrefix,
    FinishedOut,
    Forget,
    SharePrefixes,
    StepPack,
)
from inference.errors import ModelLoading
from inference.front import template_probe
from inference.front.archive import Archive
from inference.front.background import PROBE_PREFIX, Background
from inference.front.canonical import Canonicaliser, CanonicalParts
from inference.front.core_process import Connect
from inference.front.counters import Counters
from inference.front.delivery import Delivery
from inference.front.generation import (
    CANCELLED,
    ORPHANED,
    OVERDUE,
    RESTARTED,
    STOPPING,
    Clock,
    Generation,
    State,
)
from inference.front.grammars import Grammars
from inference.front.identity import describe
from inference.front.intake import Intake, Parts
from inference.front.lane import RESTART_RETRY_S, Lane
from inference.front.model import ServedModel
from inference.front.offers import Offers
from inference.front.ownership import OwnerKeys
from inference.front.readiness import Readiness
from inference.front.trimming import without_oldest
from inference.front.warming import Warming, ids_ahead
from inference.types import EngineInfo, EngineStats, FinishReason, GenerateRequest, Owner, Segment, Submitted

logger = logging.getLogger(__name__)

TICK_S = 0.05
MAX_FORGOTTEN = 10_000  # conversations that the next core is told to forget too


class Engine:
    """Satisfies `core_process.Listener`. Everything runs on one loop; nothing here blocks."""

    def __init__(
        self,
        config: EngineConfig,
        model: ServedModel,
        connect: Connect,
        *,
        shared_prefixes: Sequence[DeclaredPrefix] = (),
        clock: Clock = time.monotonic,
    ) -> None:
        self.id = uuid.uuid4().hex
        self.config = config
        self.model = model
        self.archive = Archive(ttl_s=config.log_ttl_s, clock=clock)
        self.counters = Counters()
        self.core = connect(self)
        self.lane = Lane(self.core)
        self._background = Background(self.core)
        self._warming = Warming(self._background)
        self.readiness = Readiness(
            interval_s=config.probe_interval_s,
            timeout_s=config.probe_timeout_s,
            give_up_s=config.step_timeout_s,
            clock=clock,
        )
        self._template = template_probe.probe(model.prompts, model.tokenizer)
        self._offers = Offers(template_probe.tool_format(model.prompts, model.tokenizer), model.tokenizer)
        self._keys = OwnerKeys(config.salt_key)
        self._shared_prefixes = list(shared_prefixes)
        self._forgotten: deque[bytes] = deque(maxlen=MAX_FORGOTTEN)
        self._grammars = Grammars(model, self.core.send)
        parts = Parts(
            self.id,
            config,
            model,
            self.archive,
            self.counters,
            self.core,
            self._keys,
            clock,
            self._offers,
            self._grammars,
        )
        self._intake = Intake(parts, self.loaded)
        self._canonical = Canonicaliser(
            CanonicalParts(model, self._keys, self._background, self.counters, self._offers, self._is_idle),
            is_on=not self._template.is_append_only,
        )
        self._delivery = Delivery(self.archive, self.counters, send=self.core.send, on_ended=self._on_ended)
        self._clock = clock
        self._ready: CoreReady | None = None
        self._is_stopping = False
        self._next_step = asyncio.Event()  # replaced at every step: waiting on it waits for the next one
        self._ticker: asyncio.Task[None] | None = None

    def start(self) -> None:
        template_probe.tell(self._template)
        self.core.start()
        self._grammars.start()
        self._ticker = asyncio.create_task(self._tick_for_ever(), name="engine-ticker")

    async def stop(self) -> None:
        """Ends every generation, then the core."""
        self._is_stopping = True
        self._canonical.clear()
        self._delivery.abandon_all(STOPPING)
        self.lane.fail_all("the engine is shutting down")
        if self._ticker is not None:
            self._ticker.cancel()
            await asyncio.gather(self._ticker, return_exceptions=True)
        await self.core.stop()
        await self._grammars.stop()

    # What callers ask for

    async def submit(self, request: GenerateRequest) -> Submitted:
        """Raises RequestRefused."""
        self._give_up_ahead(request.owner)  # before the conversation's next turn looks for what is kept
        submitted = await self._intake.submit(request)
        generation = self.archive.find(request.generation_id)
        # The form of an answer that went on is made with the next question.
        if generation is not None and generation.is_live and not request.continues_answer:
            kept = without_oldest(request.segments, submitted.trimmed_messages)
            self._canonical.on_asked(
                replace(request, segments=tuple(kept), tools=self._offers.shown(request))
            )
        return submitted

    async def check(self, request: GenerateRequest) -> None:
        """Raises RequestRefused for a request that could never be taken; starts nothing."""
        await self._intake.check(request)

    def cancel(self, generation_id: str, reason: str, *, only_if_orphaned: bool = False) -> bool:
        """Ends the text now; the last event follows when the core has let go. False when nothing was running.

        `only_if_orphaned`: only when no more than one client follows it, which is the caller.
        """
        if not only_if_orphaned and self._intake.cancel_early(generation_id):
            return True
        generation = self.archive.find(generation_id)
        if generation is None or generation.state in (State.ENDING, State.ENDED):
            return False
        if only_if_orphaned and len(generation.followers) > 1:
            return False
        logger.info("generation %s cancelled: %s", generation_id, reason or "no reason given")
        self._delivery.end_soon(generation, ORPHANED if only_if_orphaned else CANCELLED)
        return True

    async def warm(self, segments: Sequence[Segment], owner: Owner) -> tuple[bool, int]:
        """Prefills a history, as the next question will have it, when there is nothing better to do.

        Where the user speaks last, that is a draft: the question begins so. Gives (accepted, prompt tokens).
        """
        salt, conversation = self._keys.salt(owner), self._keys.conversation(owner)
        if not conversation or not self._may_warm(salt):
            return False, 0
        fitted = await self._intake.fit(segments, add_generation_prompt=False)
        ids = await asyncio.to_thread(ids_ahead, self.model.prompts, fitted.segments)
        if not self._may_warm(salt) or not 0 < len(ids) < self._intake.limits().max_context:
            return False, len(ids)
        self._warming.begin(ids, salt, conversation, self._clock())
        return True, len(ids)

    async def forget(self, owner: Owner, timeout_s: float) -> int:
        """Freed blocks as the core's next report counts them; 0 when it does not report in time.

        The logs of ended answers go, too. An owner that names no conversation: the user's logs and KV in memory all go;
        what is on disk goes by the conversation. Raises ModelLoading while there is no core; the next one erases then
        what the conversation has on disk.
        """
        self.archive.forget(owner)
        conversation = self._keys.conversation(owner)
        order = Forget(conversation) if conversation else Forget(b"", salt=self._keys.salt(owner))
        if conversation:
            self._forgotten.append(conversation)
        self.loaded()
        before = self.counters.total("forgotten_blocks")
        num_reports = 1 + self.has_pending_work()  # a step under way reports first and has not heard of it
        self._give_up_ahead(owner)
        self.core.send(order)
        try:
            async with asyncio.timeout(timeout_s):
                for _ in range(num_reports):
                    await self._next_step.wait()
        except TimeoutError:
            return 0
        return int(self.counters.total("forgotten_blocks") - before)

    async def count_tokens(self, segments: Sequence[Segment]) -> tuple[int, int]:
        """(tokens, window) of the prompt as a submit that may trim would make it."""
        limits = self._intake.limits()
        return len((await self._intake.fit(segments)).prompt.ids), limits.max_context

    def loaded(self) -> CoreReady:
        """What the core said about itself. Raises ModelLoading while there is none."""
        if self._ready is None or self._is_stopping:
            raise ModelLoading(self.reason or "the core is starting", retry_after_s=RESTART_RETRY_S)
        return self._ready

    def info(self) -> EngineInfo:
        ready, limits = self.loaded(), self._intake.limits()
        found = describe(self.id, self.config, self.model, ready, limits.max_context, self._template)
        return replace(found, tool_format=self._offers.format)

    def stats(self) -> EngineStats:
        return self.counters.stats(
            reason=self.reason, core_restarts=self.core.num_restarts, live_logs=len(self.archive)
        )

    @property
    def reason(self) -> str:
        """Why the engine cannot serve; empty when it can."""
        if self._is_stopping:
            return "the engine is shutting down"
        return self.readiness.reason

    # What the core says

    def on_loading(self, text: str) -> None:
        logger.info("core: %s", text)
        self.readiness.on_loading(text)

    def on_ready(self, ready: CoreReady) -> None:
        self._ready = ready
        self._grammars.on_ready()
        self.readiness.on_loading("waiting for the first token")
        # What is on disk outlives a core that had not heard of it, or not obeyed.
        for conversation in self._forgotten:
            self.core.send(Forget(conversation))
        if self._shared_prefixes:
            self.core.send(SharePrefixes(self._shared_prefixes))  # before the probe: warm before ready
        self._probe()

    def on_step(self, step: StepPack) -> None:
        if step.progress or _lane_work(step.stats) > _lane_work(self.counters.core):
            self.readiness.on_progress()
        self.counters.core = step.stats
        for out in step.finished:
            self._on_background_finished(out)
        self._delivery.hand_out(step)
        self.lane.on_step(step)
        if step.tokens:
            self.readiness.on_token()
        self._next_step.set()
        self._next_step = asyncio.Event()

    def on_lost(self, reason: str) -> None:
        self._ready = None
        self.readiness.on_lost(reason)
        self.counters.on_core_lost()
        self._background.clear()
        self._warming.clear()
        self._canonical.clear()
        self._delivery.abandon_all(RESTARTED)
        self.lane.fail_all("the engine was restarted")

    def has_pending_work(self) -> bool:
        return bool(self.archive.num_live or self._background.has_pending or self.lane.has_pending)

    def complaint(self) -> str:
        """Another core does not cure an upstream that fails."""
        return "" if self.config.upstream else self.readiness.complaint

    # Details

    def _on_background_finished(self, out: FinishedOut) -> None:
        self._background.on_finished(out.id)
        self._warming.on_finished(out.id)
        self._canonical.on_prefilled(out)
        if out.id.startswith(PROBE_PREFIX) and out.reason == FinishReason.FAILED:
            self.readiness.on_failed_probe(out.error)

    def _on_ended(self, generation: Generation) -> None:
        self._canonical.on_finished(generation)
        self._intake.on_finished(generation)

    async def _tick_for_ever(self) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            try:
                self.tick()
            except Exception:  # one fault must not end deadlines, probes and the watchdog for ever
                logger.exception("a tick failed")

    def tick(self) -> None:
        """What time does: deadlines, orphans, old logs, probes, and the watch over the core."""
        now = self._clock()
        for generation in self.archive.live():
            if generation.state is State.ENDING:
                continue
            if now > generation.deadline_at:
                self._delivery.end_soon(generation, OVERDUE)
            elif not generation.followers and now - generation.unattended_since > self.config.orphan_ttl_s:
                self._delivery.end_soon(generation, ORPHANED)
        self.archive.sweep()
        self.core.check_progress()
        is_probe_alone = self._background.has_pending and not (self.archive.num_live or self.lane.has_pending)
        self.readiness.on_work(self.has_pending_work(), is_probe_alone=is_probe_alone)
        if self.core.is_ready and not self.has_pending_work() and self.readiness.is_probe_due():
            self._probe()
        self._warming.sweep(now)
        self._canonical.go_on()

    def _may_warm(self, salt: bytes) -> bool:
        # An upstream has a queue of its own, in which nothing gives way.
        is_free = not (self.config.upstream and self.archive.num_live)
        return not self.reason and is_free and self._warming.has_room(self.counters.core, salt)

    def _give_up_ahead(self, owner: Owner) -> None:
        """What is computed already of prefills ahead of this owner's question stays kept."""
        self._canonical.give_up(owner)
        self._warming.give_up(self._keys.salt(owner), self._keys.conversation(owner))

    def _is_idle(self) -> bool:
        return not self.reason and not self.has_pending_work()

    def _probe(self) -> None:
        self.readiness.on_probe()
        self._background.probe(self.model.tokenizer.encode_plain("Hi", is_start=True))


def _lane_work(stats: CoreStats) -> int:
    return stats.embedded_texts + stats.verified_pairs
