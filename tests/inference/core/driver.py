"""Drives a core without a process: commands in, answers by id out, blocks checked after every step."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from inference.core.loop import CoreLoop
from inference.core.messages import (
    Admit,
    Cancel,
    Command,
    Embedded,
    FinishedOut,
    PrefillProgress,
    SamplingSpec,
    StepPack,
    TokenOut,
    Verified,
)

_ids = itertools.count()
GREEDY = SamplingSpec()


def admit(
    prompt_ids: Sequence[int],
    *,
    max_tokens: int = 8,
    sampling: SamplingSpec = GREEDY,
    conversation: bytes = b"",
    salt: bytes = b"salt",
    **fields: object,
) -> Admit:
    """A request with an id of its own."""
    fields = {"id": f"seq-{next(_ids)}", "stop_ids": []} | fields
    return Admit(
        prompt_ids=list(prompt_ids),
        max_tokens=max_tokens,
        sampling=sampling,
        conversation=conversation,
        salt=salt,
        **fields,  # type: ignore[arg-type]
    )


@dataclass
class Driver:
    """One loop and everything it has said."""

    loop: CoreLoop
    tokens: dict[str, list[TokenOut]] = field(default_factory=dict)
    finished: dict[str, FinishedOut] = field(default_factory=dict)
    progress: list[PrefillProgress] = field(default_factory=list)
    embedded: list[Embedded] = field(default_factory=list)
    verified: list[Verified] = field(default_factory=list)

    def step(self, *commands: Command) -> StepPack:
        pack = in_one(list(self.loop.step(commands)))
        for token in pack.tokens:
            assert token.id not in self.finished, "a token follows the end"
            self.tokens.setdefault(token.id, []).append(token)
        for end in pack.finished:
            assert end.id not in self.finished, "a sequence ends twice"
            self.finished[end.id] = end
        self.progress += pack.progress
        self.embedded += pack.embedded
        self.verified += pack.verified
        stats = pack.stats
        assert stats.blocks_free + stats.blocks_cached + stats.blocks_used == stats.blocks_total
        assert self.loop.check_blocks()
        assert self.loop._kv.problems() == []
        return pack

    def run(self, *commands: Command) -> None:
        """Until nothing is left to do."""
        self.step(*commands)
        while self.loop.has_work:
            self.step()

    def ids(self, request: Admit) -> list[int]:
        return [token.token for token in self.tokens.get(request.id, [])]

    def end(self, request: Admit) -> FinishedOut:
        return self.finished[request.id]

    def generate(self, request: Admit) -> list[int]:
        """The answer to one request, alone."""
        self.run(request)
        assert self.end(request).error == ""
        return self.ids(request)

    def cancel(self, request: Admit, keep_tokens: int = -1, reason: str = "cancelled") -> StepPack:
        return self.step(Cancel(request.id, reason, keep_tokens))


def in_one(packs: list[StepPack]) -> StepPack:
    """What one step said, as one; the lane's answers come before the rest."""
    early, last = packs[:-1], packs[-1]
    assert not any(pack.tokens or pack.finished for pack in early)
    return msgspec.structs.replace(
        last,
        embedded=[out for pack in early for out in pack.embedded],
        verified=[out for pack in early for out in pack.verified],
    )
