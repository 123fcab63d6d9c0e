"""Whatever is sent in whatever order, everything asked for ends once and rightly, and nothing is left behind."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest

from inference.core.messages import (
    Admit,
    Cancel,
    Command,
    DeclaredPrefix,
    Embedded,
    EmbedTexts,
    FinishedOut,
    Forget,
    SharePrefixes,
    StepPack,
    Verified,
    VerifyPairs,
)
from inference.core.reuse import Source
from inference.core.sharing import SHARE_PREFIX
from tests.inference.core.driver import admit, in_one
from tests.inference.core.fakes import VOCABULARY, FakeCore, expected, make_fake_core
from tests.inference.core.visitors import CONVERSATIONS, Visitors

UNREADABLE = 13  # no encoder can read a text with this token
MAX_STEPS = 3000


def encode(texts: list[list[int]]) -> np.ndarray:
    if any(UNREADABLE in text for text in texts):
        raise RuntimeError("a broken kernel")
    return np.array([[sum(text), len(text)] for text in texts], dtype=np.float32)


def random_core(source: random.Random) -> FakeCore:
    return make_fake_core(
        num_blocks=source.choice([6, 16, 36]),
        max_batch=source.choice([1, 2, 5, 8]),
        step_tokens=source.choice([4, 16, 100]),
        encode=encode,
        verify=lambda texts: encode(texts)[:, 0],
        shared_overlap=source.choice([0.0, 0.3, 1.0]),
        policy=source.choice(["fcfs", "lpm", "priority"]),
        ageing_s=source.choice([1.0, 100.0]),
        fair_shares=source.random() < 0.7,
        interactive_batch=source.choice([0, 1, 2]),
        target_tpot_s=source.choice([float("inf"), 5.0]),
    )


class Stranger:
    """Sends anything: ids that are in use or were, cancels for nobody, prompts and texts that cannot be read."""

    def __init__(self, source: random.Random) -> None:
        self.visitors = Visitors(source)
        self._source = source
        self._ids = ["nobody"]
        self._prefixes = [[source.randrange(VOCABULARY) for _ in range(length)] for length in (3, 8, 13)]

    def commands(self) -> list[Command]:
        return [self._command() for _ in range(self._source.choice([0, 1, 1, 2, 4]))]

    def _command(self) -> Command:
        source, kind = self._source, self._source.random()
        if kind < 0.5:
            return self._request()
        if kind < 0.7:
            reason = source.choice(["cancelled", "stop", "orphaned"])
            return Cancel(source.choice(self._ids[-12:]), reason, source.choice([-1, 0, 2]))
        if kind < 0.8:
            return Forget(source.choice([*CONVERSATIONS, b""]))
        if kind < 0.85:
            declared = [DeclaredPrefix(str(n), ids) for n, ids in enumerate(self._prefixes)]
            return SharePrefixes(source.sample(declared, source.randint(0, 3)))
        texts = [
            [source.randrange(VOCABULARY) for _ in range(source.randint(0, 9))]
            for _ in range(source.randint(0, 5))
        ]
        return source.choice([EmbedTexts, VerifyPairs])(f"texts-{source.random()}", texts)

    def _request(self) -> Admit:
        source, like = self._source, self.visitors.next_request()
        name = source.choice(self._ids[-12:]) if source.random() < 0.15 else f"request-{len(self._ids)}"
        self._ids.append(name)
        start = source.choice(self._prefixes) if source.random() < 0.2 else []
        end = [VOCABULARY] if source.random() < 0.02 else []
        return admit(
            [] if source.random() < 0.02 else [*start, *like.prompt_ids, *end],
            id=name,
            max_tokens=like.max_tokens,
            conversation=like.conversation,
            salt=like.salt,
            priority=like.priority,
            stop_ids=[source.randrange(VOCABULARY)] if source.random() < 0.3 else [],
            is_background=like.is_background,
            is_offline=source.random() < 0.4,
        )


class Oracle:
    """What must come of every command, by the order of commands alone."""

    def __init__(self, core: FakeCore, stranger: Stranger, source: random.Random) -> None:
        self.num_ended = 0
        self.here: dict[str, tuple[Admit, list[int]]] = {}
        self.texts: dict[str, EmbedTexts | VerifyPairs] = {}
        self._ends: list[FinishedOut] = []
        self._background: list[FinishedOut] = []  # of those, the ones that nobody asked for
        self._core = core
        self._stranger = stranger
        self._source = source

    def step(self, commands: Sequence[Command] = ()) -> None:
        """One step, of commands that can be told apart: of an id only the first of a step."""
        named: set[str] = set()
        sent: list[Command] = []
        for command in commands:
            if isinstance(command, (Admit, Cancel)):
                if command.id in named:
                    continue
                named.add(command.id)
            if isinstance(command, Admit) and command.id not in self.here:
                self.here[command.id] = command, []
                if self._source.random() < 0.02:
                    self._core.runner.broken.add(command.id)
            if isinstance(command, (EmbedTexts, VerifyPairs)):
                self.texts[command.id] = command
            sent.append(command)
        loop = self._core.driver.loop
        cancelled = {command.id: command.reason for command in sent if isinstance(command, Cancel)}
        self._hear(in_one(list(loop.step(sent))), cancelled)
        assert loop.check_blocks()
        assert loop._kv.problems() == []

    def finish(self) -> None:
        for _ in range(MAX_STEPS):
            if not self._core.driver.loop.has_work:
                break
            self.step()
        assert not self.here
        assert not self.texts
        assert self._core.driver.loop.stats().blocks_used == 0
        self._balance()

    def _balance(self) -> None:
        """What was told of each sequence adds up to what the core counted; background work is told apart."""
        stats = self._core.driver.loop.stats()
        reused = sum(getattr(stats, f"reused_{source}_tokens") for source in Source)
        for name in ("prompt_tokens", "prefilled_tokens", "generated_tokens", "device_seconds"):
            assert sum(getattr(end, name) for end in self._ends) == pytest.approx(getattr(stats, name)), name
        assert sum(end.reused_tokens for end in self._ends) == reused
        for name in (
            "prompt_tokens",
            "reused_tokens",
            "prefilled_tokens",
            "generated_tokens",
            "device_seconds",
        ):
            counted = getattr(stats, f"background_{name}")
            assert sum(getattr(end, name) for end in self._background) == pytest.approx(counted), name

    def _hear(self, pack: StepPack, cancelled: dict[str, str]) -> None:
        for token in pack.tokens:
            if not token.id.startswith(SHARE_PREFIX):
                self.here[token.id][1].append(token.token)
        for end in pack.finished:
            self._ends.append(end)
            if end.id.startswith(SHARE_PREFIX) or self.here[end.id][0].is_background:
                self._background.append(end)
            if not end.id.startswith(SHARE_PREFIX):
                self._end(end, cancelled.get(end.id, ""))
        for answer in (*pack.embedded, *pack.verified):
            self._answer(answer)

    def _end(self, end: FinishedOut, cancelled: str) -> None:
        request, ids = self.here.pop(end.id)
        is_broken = end.id in self._core.runner.broken
        self._core.runner.broken.discard(end.id)
        room = self._core.kv.pool.num_blocks * self._core.kv.block_tokens - len(request.prompt_ids)
        limit = min(request.max_tokens, room)
        is_impossible = (
            not request.prompt_ids or VOCABULARY in request.prompt_ids or room < min(1, request.max_tokens)
        )
        assert ids == expected(request.prompt_ids, len(ids))
        assert end.generated_tokens == len(ids)
        if end.reason == "failed":
            assert is_impossible or is_broken
        elif end.reason != cancelled:
            is_stopped = bool(ids) and ids[-1] in request.stop_ids
            assert (end.reason, is_stopped or len(ids) == limit) == ("stop" if is_stopped else "length", True)
        self.num_ended += 1
        self._stranger.visitors.remember(request, ids)

    def _answer(self, answer: Embedded | Verified) -> None:
        texts = self.texts.pop(answer.id).token_ids
        assert bool(answer.error) == any(UNREADABLE in text or not text for text in texts)
        if isinstance(answer, Verified):
            assert answer.scores == ([] if answer.error else [sum(text) for text in texts])
        elif not answer.error:
            rows = np.frombuffer(answer.vectors, dtype="<f4").reshape(-1, 2)
            assert rows.tolist() == [[sum(text), len(text)] for text in texts]


@pytest.mark.parametrize("seed", range(10))
def test_any_commands_in_any_order(seed: int) -> None:
    source = random.Random(seed)
    core, stranger = random_core(source), Stranger(source)
    oracle = Oracle(core, stranger, source)
    for number in range(300):
        oracle.step(stranger.commands())
        if number % 50 == 49:
            oracle.finish()
    oracle.finish()
    assert oracle.num_ended > 100
    for key in CONVERSATIONS:
        oracle.step([Forget(key)])
    assert len(core.kv.kept.conversations) == core.kv.kept.conversations.num_heads == 0
