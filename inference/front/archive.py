"""Every generation that can be attached to: the live ones, and the ended ones for a while.

Knows age and size; does not know what happens in a generation.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator

from inference.front.generation import Generation
from inference.types import Owner

# Ended logs together; when full, the one that ended first goes first. Its answer is in the caller's database.
MAX_ENDED_BYTES = 64 * 1024 * 1024
MAX_ENDED = 20_000


class Archive:
    def __init__(self, *, ttl_s: float, clock: Callable[[], float]) -> None:
        self._ttl_s = ttl_s
        self._clock = clock
        self._live: dict[str, Generation] = {}
        self._ended: OrderedDict[str, Generation] = OrderedDict()
        self._ended_bytes = 0

    def __len__(self) -> int:
        return len(self._live) + len(self._ended)

    def find(self, generation_id: str) -> Generation | None:
        return self._live.get(generation_id) or self._ended.get(generation_id)

    def live(self) -> Iterator[Generation]:
        """A stable walk: generations may end during it."""
        return iter(list(self._live.values()))

    @property
    def num_live(self) -> int:
        return len(self._live)

    def add(self, generation: Generation) -> None:
        self._live[generation.id] = generation

    def settle(self, generation: Generation) -> None:
        """Call once when `generation` has ended."""
        if self._live.pop(generation.id, None) is None:
            return
        self._ended[generation.id] = generation
        self._ended_bytes += generation.log.num_bytes
        while self._ended_bytes > MAX_ENDED_BYTES or len(self._ended) > MAX_ENDED:
            self._drop_oldest()

    def forget(self, owner: Owner) -> int:
        """Drop the ended logs of a conversation, or with no conversation named all of the user's; how many."""
        ended = [one for one in self._ended.values() if one.owner is not None and _is_of(one.owner, owner)]
        for generation in ended:
            del self._ended[generation.id]
            self._ended_bytes -= generation.log.num_bytes
        return len(ended)

    def sweep(self) -> None:
        now = self._clock()
        while self._ended and now - next(iter(self._ended.values())).ended_at > self._ttl_s:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        _, generation = self._ended.popitem(last=False)
        self._ended_bytes -= generation.log.num_bytes


def _is_of(whose: Owner, asked: Owner) -> bool:
    is_user = (whose.tenant, whose.user) == (asked.tenant, asked.user)
    return is_user and asked.conversation in ("", whose.conversation)
