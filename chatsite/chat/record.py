"""What has to outlive this process of one answer: checkpoints while it runs, one final store at its end.

Knows the rows; does not know where the text comes from.
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import replace
from uuid import UUID

from django.db import Error as DatabaseError
from django.db import transaction

from chatsite.accounts.ledger import booking
from chatsite.accounts.quotas import settlement
from chatsite.chat import generations
from chatsite.chat.events import Durations
from chatsite.chat.generations import Ending, Progress
from chatsite.chat.keeping import keeper
from chatsite.chat.live import LiveAnswer
from chatsite.chat.models import FINAL_STATES, Generation, Message, Origin, State
from chatsite.chat.outcome import Outcome
from chatsite.db import run_in_db
from inference.types import EngineInfo, Segment, TokenLogprob, Usage

logger = logging.getLogger(__name__)

STORE_PATIENCE_S = 30.0
FIRST_BACKOFF_S = 0.1
MAX_BACKOFF_S = 2.0


class Record:
    """The ledger of one answer beside its live text: ids, their tokenizer, and when the first text came.

    An adopted one goes on from a stored message, and its beginning was another process's. `prompt_tokens` are known
    as soon as the engine makes the answer for this record.
    """

    def __init__(
        self, live: LiveAnswer, adopted: Message | None = None, begun: Segment | None = None, model: str = ""
    ) -> None:
        """`begun` is an answer behind which this one goes on, `model` the one that is asked."""
        ledger = adopted or begun
        self.live = live
        self.token_ids = list(ledger.token_ids) if ledger else []
        self.tokenizer = ledger.tokenizer if ledger else ""
        self.model = model
        self.revision = ""
        self._keeps_ids = True
        self.prompt_tokens = 0
        self._num_seen = 0
        self._is_adopted = adopted is not None
        self._began = time.monotonic()
        self._first_text_ms = 0.0

    def made_by(self, info: EngineInfo) -> None:
        """Who makes it. Ids of two tokenizers spell no text: what another one's model began is kept as text alone."""
        if self.token_ids and self.tokenizer != info.tokenizer:
            self.token_ids, self._keeps_ids = [], False
        self.model, self.tokenizer, self.revision = info.model, info.tokenizer, info.revision

    def add_text(
        self, seq: int, text: str, token_ids: tuple[int, ...], logprobs: tuple[TokenLogprob, ...] = ()
    ) -> None:
        if not self._first_text_ms:
            self._first_text_ms = self._elapsed_ms()
        if self._keeps_ids:
            self.token_ids.extend(token_ids)
        self._num_seen += len(token_ids)
        self.live.add_text(seq, text, len(token_ids), logprobs)

    def progress(self) -> Progress:
        return Progress(self.live.text, tuple(self.token_ids), self.tokenizer, self.live.seq)

    async def keep(self) -> None:
        """Checkpoints for ever. Raises LeaseLost."""
        await keeper().keep(self.live.generation, self.progress)

    async def hand_over(self) -> None:
        """Stores what there is and gives the lease back."""
        try:
            if await run_in_db(generations.checkpoint, {self.live.generation: self.progress()}):
                await run_in_db(generations.release, self.live.generation)
        except DatabaseError as error:
            logger.warning(
                "%s could not be handed over, its lease will expire: %s", self.live.generation, error
            )

    async def finish(self, outcome: Outcome) -> tuple[State, Durations]:
        """Stores the end; the state that stands. Tries for STORE_PATIENCE_S while the database is away, then raises."""
        outcome = self._with_known_usage(outcome)
        durations = self._durations(outcome)
        give_up_at, backoff_s = time.monotonic() + STORE_PATIENCE_S, FIRST_BACKOFF_S
        while True:
            try:
                return await run_in_db(
                    _finish, self.live.generation, outcome, durations, self.progress()
                ), durations
            except DatabaseError as error:
                if time.monotonic() + backoff_s > give_up_at:
                    raise
                logger.warning("the end of %s not stored yet: %s", self.live.generation, error)
            await asyncio.sleep(backoff_s)
            backoff_s = min(2 * backoff_s, MAX_BACKOFF_S)

    def _with_known_usage(self, outcome: Outcome) -> Outcome:
        """Where the engine has not said what an answer took, what was seen of it: nobody gets it for nothing."""
        if outcome.usage.prompt_tokens or not self.prompt_tokens or outcome.origin is not Origin.MODEL:
            return outcome
        seen = Usage(self.prompt_tokens, prefilled_tokens=self.prompt_tokens, generated_tokens=self._num_seen)
        return replace(outcome, usage=seen)

    def _durations(self, outcome: Outcome) -> Durations:
        if self._is_adopted:
            return outcome.durations(outcome.timings.ttft_s * 1000, 0.0)
        return outcome.durations(self._first_text_ms, self._elapsed_ms())

    def _elapsed_ms(self) -> float:
        return (time.monotonic() - self._began) * 1000


def _finish(generation: UUID, outcome: Outcome, durations: Durations, progress: Progress) -> State:
    ending = Ending(outcome.state, outcome.finish_reason, outcome.error_code, outcome.columns(durations))
    with transaction.atomic():
        standing, row = generations.finish(generation, ending, progress)
        if row is not None and standing in FINAL_STATES and outcome.refusal is None:
            booking.book(row, outcome, durations)
        if standing in FINAL_STATES:
            _settle(generation, outcome)
    return standing


def end(generation: UUID, ended_as: Outcome) -> bool:
    """Ends an answer whose owner may be gone: what it took is owed to the ledger. False when it has ended already."""
    reason, code = ended_as.finish_reason, ended_as.error_code
    with transaction.atomic():
        if not generations.move(generation, ended_as.state, finish_reason=reason, error_code=code):
            return False
        booking.book(Generation.objects.get(pk=generation), ended_as, Durations())
    return True


def _settle(generation: UUID, outcome: Outcome) -> None:
    """A question that the server had no room for costs nothing; every other one is a request, whatever came of it."""
    if outcome.refusal is not None and outcome.refusal.is_retryable:
        settlement.give_back(generation)
    else:
        settlement.settle(generation, outcome.counts.prompt_tokens + outcome.counts.generated_tokens)
