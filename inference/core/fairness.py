"""Equal shares of the engine for users who wait, in tokens rather than requests.

Virtual token counters (Sheng et al., "Fairness in Serving Large Language Models", OSDI 2024): every user has a
counter of the service received, and the user with the smallest is served next. Knows users by the salt of their
requests, that is by a keyed hash. Does not know blocks, seats or time.
"""

from __future__ import annotations

import heapq
from collections import Counter, OrderedDict
from collections.abc import Iterable
from typing import TypeAlias

from inference.core.policy import Policy
from inference.core.sequence import Sequence, State

# A generated token costs a pass over all weights that few others share; the paper weighs it double, as do price lists.
PROMPT_WEIGHT = 1.0
GENERATED_WEIGHT = 2.0
# Users with nothing here whose counters are remembered. One who is forgotten starts at the level of whoever waits.
MAX_IDLE_USERS = 1000

User: TypeAlias = tuple[bool, bytes]  # interactive and offline work of one person are counted apart


class FairShares:
    """Service received by user."""

    def __init__(self) -> None:
        self._served: dict[User, float] = {}
        self._num_here: Counter[User] = Counter()
        self._num_waiting: Counter[User] = Counter()  # what nobody asked for is not counted
        self._idle: OrderedDict[User, None] = OrderedDict()
        self._last_started: dict[bool, User] = {}

    def arrive(self, sequence: Sequence) -> None:
        """A new request, which waits. A user for whom nobody waited has saved up no claim: lifted to the least of those
        who wait.

        While nobody waits at all, the level is that of the user who was the last to leave the queue.
        """
        user = user_of(sequence)
        if user not in self._num_waiting:
            others = [self._served[other] for other in self._num_waiting if other[0] == sequence.is_offline]
            last = self._last_started.get(sequence.is_offline, user)
            level = min(others, default=self._served.get(last, 0.0))
            self._served[user] = max(self._served.get(user, 0.0), level)
        self._num_here[user] += 1
        self._idle.pop(user, None)
        self.wait(sequence)

    def wait(self, sequence: Sequence) -> None:
        """A request waits, for the first time or because it was preempted."""
        if not sequence.is_background:
            self._num_waiting[user_of(sequence)] += 1

    def start(self, sequence: Sequence) -> None:
        self._last_started[sequence.is_offline] = user_of(sequence)
        self._wait_no_more(sequence)

    def leave(self, sequence: Sequence) -> None:
        """A request ends, wherever it is."""
        if sequence.state is State.WAITING:
            self._wait_no_more(sequence)
        user = user_of(sequence)
        self._num_here[user] -= 1
        if self._num_here[user]:
            return
        del self._num_here[user]
        self._idle[user] = None
        while len(self._idle) > MAX_IDLE_USERS:
            forgotten, _ = self._idle.popitem(last=False)
            del self._served[forgotten]

    def charge(self, sequence: Sequence, num_tokens: int) -> None:
        """Book the next `num_tokens` of a sequence. What is computed again after a preemption was paid already."""
        if sequence.is_background:
            return  # warmed in time that nobody wanted
        if sequence.state is State.DECODE:
            cost = GENERATED_WEIGHT * num_tokens
        else:
            computed = min(sequence.num_computed + num_tokens, sequence.num_prompt)
            cost = PROMPT_WEIGHT * max(0, computed - sequence.prompt_done)
        self._served[user_of(sequence)] += cost

    def served(self, sequence: Sequence) -> float:
        """Weighted tokens of the sequence's user so far."""
        return self._served[user_of(sequence)]

    def order(self, waiting: Iterable[Sequence], policy: Policy, now: float) -> list[Sequence]:
        """Who starts when, if every prompt has to be read: users by what they will have received, each by policy."""
        by_user: dict[User, list[Sequence]] = {}
        for sequence in waiting:
            by_user.setdefault(user_of(sequence), []).append(sequence)
        queues = {user: iter(policy.order(sequences, now)) for user, sequences in by_user.items()}
        heap: list[tuple[float, int, Sequence]] = []
        for user, queue in queues.items():
            first = next(queue)
            heapq.heappush(heap, (self._served[user], first.arrival, first))
        ordered = []
        while heap:
            level, _, sequence = heapq.heappop(heap)
            ordered.append(sequence)
            following = next(queues[user_of(sequence)], None)
            if following is not None:
                level += PROMPT_WEIGHT * sequence.num_prompt
                heapq.heappush(heap, (level, following.arrival, following))
        return ordered

    def _wait_no_more(self, sequence: Sequence) -> None:
        user = user_of(sequence)
        if not sequence.is_background:
            self._num_waiting[user] -= 1
            if not self._num_waiting[user]:
                del self._num_waiting[user]


def user_of(sequence: Sequence) -> User:
    return sequence.is_offline, sequence.admit.salt
