"""The scripted core: speaks to the front like the real one, and computes nothing.

Knows `core.messages`, the batch limit and scripts (`inference.testing.script`). Imitates queueing, prefill,
reuse of a conversation's head, cancelling and embedding, and the ways a core can go wrong. Runs in a process of
its own, so that it can be killed.

    python -m inference.testing.core --fd N [--max-batch 32]
"""

from __future__ import annotations

import argparse
import os
import selectors
import socket
import sys
import time
from collections import OrderedDict, deque

import msgspec

from inference.core.messages import (
    FRAME_HEADER,
    Admit,
    Cancel,
    Command,
    CoreStats,
    Embedded,
    EmbedTexts,
    FinishedOut,
    Forget,
    PrefillProgress,
    SharePrefixes,
    StepPack,
    TokenOut,
    Verified,
    VerifyPairs,
    Vocabulary,
    pack,
    unpack_inbox,
)
from inference.testing.embedding import DIM, embed_ids, similarity
from inference.testing.held import fitting
from inference.testing.report import BACKGROUND, COUNTERS, gauges_of, ready
from inference.testing.script import STAMP, Plan, one_by_one, plan_for
from inference.testing.sequence import (
    DECODE_S,
    PREFILL_S,
    Sequence,
    alternatives,
    blocks,
    common_prefix,
    end_of,
)
from inference.testing.stamps import stamp_of
from inference.testing.tokenizer import token_of

MAX_HEADS = 1000


class ScriptedCore:
    """drain -> schedule -> emit, like the real loop; the clock decides which tokens are due."""

    def __init__(self, pipe: socket.socket, max_batch: int) -> None:
        self.pipe = pipe
        self.max_batch = max_batch
        self.waiting: deque[Sequence] = deque()
        self.running: dict[str, Sequence] = {}
        self.heads: OrderedDict[bytes, list[int]] = OrderedDict()
        self.counters: dict[str, float] = dict.fromkeys(COUNTERS, 0)
        self.out = StepPack()
        self.buffer = bytearray()
        self.vocabulary: Vocabulary | None = None

    def run(self) -> None:
        selector = selectors.DefaultSelector()
        selector.register(self.pipe, selectors.EVENT_READ)
        self.pipe.sendall(pack(ready()))
        while True:
            if selector.select(self._seconds_until_due()):
                chunk = self.pipe.recv(1 << 20)
                if not chunk:
                    return  # the front is gone
                self.buffer += chunk
            self._begin_step()
            self._drain()
            self._schedule()
            self._advance(time.monotonic())
            self._emit()

    def _seconds_until_due(self) -> float | None:
        if self.waiting and len(self.running) < self.max_batch:
            return 0.0  # all that ran have ended in the last step
        dues = [sequence.due_at for sequence in self.running.values()]
        return max(0.0, min(dues) - time.monotonic()) if dues else None

    def _begin_step(self) -> None:
        self.out = StepPack(tokens=[], progress=[], finished=[], positions=[], embedded=[], verified=[])

    def _drain(self) -> None:
        while len(self.buffer) >= FRAME_HEADER.size:
            (size,) = FRAME_HEADER.unpack_from(self.buffer)
            if len(self.buffer) < FRAME_HEADER.size + size:
                return
            body = bytes(self.buffer[FRAME_HEADER.size : FRAME_HEADER.size + size])
            del self.buffer[: FRAME_HEADER.size + size]
            for command in unpack_inbox(body).commands:
                self._obey(command)

    def _obey(self, command: Command) -> None:
        match command:
            case Admit():
                self.waiting.append(Sequence(command, self._plan(command), time.monotonic()))
                self.counters["prompt_tokens"] += len(command.prompt_ids)
            case Cancel():
                self._cancel(command)
            case Forget():
                ids = self.heads.pop(command.conversation, [])
                self.counters["forgotten_blocks"] += blocks(len(ids))
            case Vocabulary():
                self.vocabulary = command
            case SharePrefixes():
                pass  # nothing is computed here, so there is nothing to share
            case EmbedTexts():
                vectors = b"".join(embed_ids(ids) for ids in command.token_ids)
                self.counters["embedded_texts"] += len(command.token_ids)
                self.out.embedded.append(Embedded(command.id, DIM, vectors))
            case VerifyPairs():
                scores = [similarity(ids) for ids in command.token_ids]
                self.counters["verified_pairs"] += len(scores)
                self.out.verified.append(Verified(command.id, scores))

    def _plan(self, admit: Admit) -> Plan:
        """What the script says, which may break any grammar; without one the answer fits its own."""
        plan, grammar = plan_for(admit.prompt_ids), admit.sampling.grammar
        if grammar is None or self.vocabulary is None or not plan.is_echo:
            return plan
        return Plan(one_by_one(fitting(grammar, self.vocabulary)), plan.script)

    def _cancel(self, command: Cancel) -> None:
        sequence = self.running.get(command.id) or next(
            (s for s in self.waiting if s.admit.id == command.id), None
        )
        if sequence is None:
            return
        self.counters["cancelled"] += not command.is_own_end
        kept = len(sequence.generated) if command.keep_tokens < 0 else command.keep_tokens
        del sequence.generated[kept:]
        self._finish(sequence, command.reason)

    def _schedule(self) -> None:
        now = time.monotonic()
        while self.waiting and len(self.running) < self.max_batch:
            sequence = self.waiting.popleft()
            sequence.started_at = now
            sequence.due_at = now + sequence.plan.script.first_delay_ms / 1000
            head = self.heads.get(sequence.admit.conversation, []) if sequence.admit.conversation else []
            sequence.reused = common_prefix(head, sequence.admit.prompt_ids[:-1])
            self.running[sequence.admit.id] = sequence
        self.out.positions.extend((sequence.admit.id, place) for place, sequence in enumerate(self.waiting))

    def _advance(self, now: float) -> None:
        due = [sequence for sequence in self.running.values() if sequence.due_at <= now]
        for sequence in due:
            if not sequence.has_prefilled:
                self._prefill(sequence)
            if sequence.admit.id in self.running:
                self._decode(sequence, now)
        if due:
            self.counters["steps"] += 1
            self.counters["decode_forwards"] += 1
            self.counters["step_seconds_sum"] += time.monotonic() - now

    def _prefill(self, sequence: Sequence) -> None:
        total = len(sequence.admit.prompt_ids)
        sequence.has_prefilled = True
        self.out.progress.append(PrefillProgress(sequence.admit.id, total, total))
        self.counters["reused_head_tokens"] += sequence.reused
        self.counters["prefilled_tokens"] += total - sequence.reused
        self.counters["device_seconds"] += (total - sequence.reused) * PREFILL_S
        if sequence.plan.error:
            self._finish(sequence, "failed", sequence.plan.error)
        elif sequence.admit.max_tokens == 0:
            self._finish(sequence, "length")

    def _decode(self, sequence: Sequence, now: float) -> None:
        script = sequence.plan.script
        self._misbehave(sequence)
        if sequence.admit.id not in self.running:
            return
        num = len(sequence.generated)
        if script.stall_after is not None and num >= script.stall_after and not sequence.has_stalled:
            sequence.has_stalled = True
            sequence.due_at = now + script.stall_ms / 1000
            return
        if sequence.num_steps >= len(sequence.plan.steps):
            self._finish(sequence, script.finish)
            return
        for planned in sequence.plan.steps[sequence.num_steps]:
            token = token_of(stamp_of(now)) if planned == STAMP else planned
            sequence.generated.append(token)
            sequence.num_made += 1
            self.counters["generated_tokens"] += 1
            self.counters["device_seconds"] += DECODE_S
            top = alternatives(token, sequence.admit.sampling.logprobs)
            self.out.tokens.append(TokenOut(sequence.admit.id, token, -0.5, top))
            if len(sequence.generated) >= sequence.admit.max_tokens:
                self._finish(sequence, "length")
                return
        sequence.num_steps += 1
        sequence.due_at = max(now, sequence.due_at + script.delay_ms / 1000)

    def _misbehave(self, sequence: Sequence) -> None:
        script, num = sequence.plan.script, len(sequence.generated)
        if script.fail_after is not None and num >= script.fail_after:
            self._finish(sequence, "failed", "scripted failure")
        elif script.die_after is not None and num >= script.die_after:
            self._emit()
            os._exit(1)
        elif script.hang_after is not None and num >= script.hang_after:
            self._emit()
            time.sleep(1e6)
        elif script.garbage_after is not None and num >= script.garbage_after:
            self._emit()
            self.pipe.sendall(b"\xff" * 64)
            time.sleep(1e6)

    def _finish(self, sequence: Sequence, reason: str, error: str = "") -> None:
        now = time.monotonic()
        admit = sequence.admit
        self.running.pop(admit.id, None)
        if sequence in self.waiting:
            self.waiting.remove(sequence)
        if admit.conversation and sequence.has_prefilled:
            self._keep_head(admit.conversation, admit.prompt_ids + sequence.generated)
        end = end_of(sequence, reason, error, now)
        if admit.is_background:
            self._count_background(end)
        self.out.finished.append(end)

    def _count_background(self, end: FinishedOut) -> None:
        for name in BACKGROUND:
            self.counters[f"background_{name}"] += getattr(end, name)

    def _keep_head(self, conversation: bytes, ids: list[int]) -> None:
        self.heads[conversation] = ids
        self.heads.move_to_end(conversation)
        while len(self.heads) > MAX_HEADS:
            self.heads.popitem(last=False)

    def _emit(self) -> None:
        gauges = gauges_of(self.running.values(), self.waiting, self.heads.values())
        stats = msgspec.convert(self.counters | gauges, CoreStats, strict=False)
        out = self.out
        message = StepPack(
            out.tokens, out.progress, out.finished, out.positions, out.embedded, out.verified, stats
        )
        self.pipe.sendall(pack(message))
        self._begin_step()


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="The scripted core; started by the front.")
    parser.add_argument("--fd", type=int, required=True)
    parser.add_argument("--max-batch", type=int, default=32)
    options = parser.parse_args(argv)
    try:
        ScriptedCore(socket.socket(fileno=options.fd), options.max_batch).run()
    except (BrokenPipeError, ConnectionResetError):
        sys.exit(0)  # the front is gone


if __name__ == "__main__":
    main()
