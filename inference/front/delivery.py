"""What a step of the core says, handed to the generations that it is about.

Knows that generations must not harm each other: whatever goes wrong with the tokens of one ends that one only, and
its neighbours of the same step hear what is theirs. Does not know requests, probes or the embedding lane.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Concatenate, ParamSpec

from inference.core.messages import Cancel, Command, FinishedOut, StepPack, TokenOut
from inference.front.archive import Archive
from inference.front.counters import Counters
from inference.front.generation import Ending, Generation
from inference.types import FinishReason

logger = logging.getLogger(__name__)

Args = ParamSpec("Args")

BROKEN = Ending(FinishReason.FAILED, "generation_failed", "what the model said could not be handled")


class Delivery:
    """`send` takes a command to the core; `on_ended` hears of every generation that the core let go in order."""

    def __init__(
        self,
        archive: Archive,
        counters: Counters,
        *,
        send: Callable[[Command], None],
        on_ended: Callable[[Generation], None],
    ) -> None:
        self._archive = archive
        self._counters = counters
        self._send = send
        self._on_ended = on_ended

    def hand_out(self, step: StepPack) -> None:
        for generation_id, position in step.positions:
            self._alone(generation_id, Generation.show_queued, position)
        for progress in step.progress:
            self._alone(progress.id, Generation.show_prefill, progress.done, progress.total)
        for generation_id, outs in _by_generation(step.tokens).items():
            self._alone(generation_id, self._take, outs)
        for out in step.finished:
            self._alone(out.id, self._finish, out)

    def end_soon(self, generation: Generation, ending: Ending) -> None:
        """Ends the text now; the last event follows when the core has let go."""
        self._alone(generation.id, self._end_soon, ending)

    def abandon_all(self, ending: Ending) -> None:
        """Ends every generation without the core."""
        for generation in self._archive.live():
            self._alone(generation.id, Generation.abandon, ending)
            self._archive.settle(generation)

    def _take(self, generation: Generation, outs: list[TokenOut]) -> None:
        was_ending = generation.ending is not None
        for out in outs:
            generation.take(out)
        if generation.ending is not None and not was_ending:
            self._counters.repetitions += generation.ending.reason is FinishReason.REPETITION
            self._tell_core(generation)
        generation.publish()

    def _finish(self, generation: Generation, out: FinishedOut) -> None:
        generation.finish(out)
        self._archive.settle(generation)
        self._on_ended(generation)

    def _end_soon(self, generation: Generation, ending: Ending) -> None:
        generation.end_soon(ending)
        self._tell_core(generation)

    def _tell_core(self, generation: Generation) -> None:
        assert generation.ending is not None
        self._send(Cancel(generation.id, generation.ending.reason, generation.num_visible_tokens))

    def _alone(
        self,
        generation_id: str,
        work: Callable[Concatenate[Generation, Args], None],
        *args: Args.args,
        **options: Args.kwargs,
    ) -> None:
        """Does `work` with a live generation; an error ends it and nobody else."""
        generation = self._archive.find(generation_id)
        if generation is None or not generation.is_live:
            return
        try:
            work(generation, *args, **options)
        except Exception:
            logger.exception("generation %s is ended: its news could not be handled", generation_id)
            generation.break_off(BROKEN)
            self._archive.settle(generation)
            self._send(Cancel(generation_id, FinishReason.FAILED, generation.num_visible_tokens))


def _by_generation(outs: Iterable[TokenOut]) -> dict[str, list[TokenOut]]:
    grouped: dict[str, list[TokenOut]] = {}
    for out in outs:
        grouped.setdefault(out.id, []).append(out)
    return grouped
