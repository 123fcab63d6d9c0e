"""Who asks for what, and when: users with conversations, one who floods, and bulk work. The same on every run.

Knows requests and times; nothing about how they are served. The next turn of a conversation holds the turn before as
it was generated, as a client's would.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from inference.core.messages import Admit, SamplingSpec

VOCABULARY = 50_000
FLOODER = "flooder"
GREEDY = SamplingSpec()


@dataclass(frozen=True, slots=True)
class Load:
    """Of `num_requests` in all the flooder sends half and offline work is a tenth."""

    num_requests: int = 3000
    num_users: int = 12
    flood: int = 24  # requests that the flooder always has here or on the way
    arrivals_per_s: float = 0.4  # first turns of all polite users together
    think_s: float = 8.0  # mean pause before a user's next turn
    max_turns: int = 5
    prompt_tokens: tuple[int, int] = (16, 400)  # of a user's message
    long_prompt_tokens: int = 2500  # every 25th message
    answer_tokens: tuple[int, int] = (8, 96)
    system_tokens: int = 96  # each user has one system prompt


@dataclass(frozen=True, slots=True)
class Arrival:
    at_s: float
    user: str
    admit: Admit
    turns_left: int = 0


class Crowd:
    """Makes arrivals: those that come by themselves, and those that follow an answer."""

    def __init__(self, load: Load, seed: int) -> None:
        self._load = load
        self._random = random.Random(seed)  # noqa: S311 - a simulation must repeat
        self._number = 0
        self._flood_left = load.num_requests // 2 - load.flood
        self._system = {name: self._text(load.system_tokens) for name in [*self._names(), FLOODER, "bulk"]}

    def first_arrivals(self) -> list[Arrival]:
        """The flood and the bulk work are there at once; first turns come at random times."""
        load = self._load
        num_offline = load.num_requests // 10
        arrivals = [self._first(FLOODER, 0.0) for _ in range(load.flood)]
        arrivals += [
            self._first("bulk", self._random.uniform(0, 60), is_offline=True) for _ in range(num_offline)
        ]
        num_turns = (1 + load.max_turns) / 2
        now = 0.0
        for _ in range(int((load.num_requests / 2 - num_offline) / num_turns)):
            now += self._random.expovariate(load.arrivals_per_s)
            turns_left = self._random.randint(0, load.max_turns - 1)
            arrivals.append(self._first(self._random.choice(self._names()), now, turns_left=turns_left))
        return arrivals

    def after(self, arrival: Arrival, generated: list[int], now: float) -> Arrival | None:
        """What its user sends when an answer is complete."""
        if arrival.user == FLOODER:
            self._flood_left -= 1
            return self._first(FLOODER, now) if self._flood_left >= 0 else None
        if not arrival.turns_left:
            return None
        history = [*arrival.admit.prompt_ids, *generated]
        at_s = now + self._random.expovariate(1 / self._load.think_s)
        return self._arrival(arrival.user, at_s, history, arrival.admit, arrival.turns_left - 1)

    def _first(self, user: str, at_s: float, *, turns_left: int = 0, is_offline: bool = False) -> Arrival:
        conversation = f"{user}-{self._number}".encode()
        head = Admit("", [], GREEDY, 0, [], user.encode(), conversation, is_offline=is_offline)
        return self._arrival(user, at_s, self._system[user], head, turns_left)

    def _arrival(self, user: str, at_s: float, history: list[int], like: Admit, turns_left: int) -> Arrival:
        load = self._load
        self._number += 1
        is_long = self._number % 25 == 0 and not like.is_offline
        size = load.long_prompt_tokens if is_long else self._random.randint(*load.prompt_tokens)
        admit = Admit(
            id=f"{user}-{self._number}",
            prompt_ids=[*history, *self._text(size)],
            sampling=GREEDY,
            max_tokens=self._random.randint(*load.answer_tokens),
            stop_ids=[],
            salt=like.salt,
            conversation=like.conversation,
            priority=self._random.choice((0, 0, 0, 1)),
            is_offline=like.is_offline,
        )
        return Arrival(at_s, user, admit, turns_left)

    def _text(self, num_tokens: int) -> list[int]:
        return [self._random.randrange(VOCABULARY) for _ in range(num_tokens)]

    def _names(self) -> list[str]:
        return [f"user{number}" for number in range(self._load.num_users)]
