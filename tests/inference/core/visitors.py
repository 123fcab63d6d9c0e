"""Mixed requests at random, the same on every run: conversations that go on, fork, go back and are cut short."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field

from inference.core.messages import Admit, Cancel, Command, Forget
from tests.inference.core.driver import Driver, admit

CONVERSATIONS = (b"a", b"b", b"c", b"d")
CLASSES = ("closed", "superseded", "stale", "idle", "active", "shared")


class Visitors:
    """Who asks what next."""

    def __init__(self, source: random.Random) -> None:
        self._source = source
        self._histories: dict[bytes, list[list[int]]] = {key: [[]] for key in (*CONVERSATIONS, b"")}

    def next_request(self) -> Admit:
        source = self._source
        key = source.choice(list(self._histories))
        history = source.choice(self._histories[key])[: source.choice([8, 20, 50])]
        if source.random() < 0.3:
            history = history[: source.randrange(len(history) + 1)]  # an earlier turn is edited
        new = [source.randrange(50) for _ in range(source.randint(1, 12))]
        return admit(
            [*history, *new],
            max_tokens=source.choice([0, 1, 3, 8, 20]),
            conversation=key,
            salt=b"other" if source.random() < 0.1 else b"salt",  # somebody else with the same key
            priority=source.randint(-1, 1),
            is_background=source.random() < 0.05,
        )

    def remember(self, request: Admit, answer: list[int]) -> None:
        branches = self._histories[request.conversation]
        branches.append([*request.prompt_ids, *answer])
        del branches[:-4]


@dataclass
class Visits:
    """What was asked of a core, and what was seen meanwhile."""

    requests: list[Admit] = field(default_factory=list)
    aborted: set[str] = field(default_factory=set)
    steps_by_class: Counter[str] = field(
        default_factory=Counter
    )  # steps in which the class had cached blocks


def visit(driver: Driver, num_requests: int, seed: int) -> Visits:
    """A request a step, 30 % of them aborted, now and then a conversation forgotten or a rest; then all is answered."""
    source, visits, live = random.Random(seed), Visits(), list[Admit]()
    visitors = Visitors(source)
    for number in range(num_requests):
        live.append(visitors.next_request())
        visits.requests.append(live[-1])
        commands: list[Command] = [live[-1]]
        if source.random() < 0.3:
            victim = source.choice(live)  # perhaps the one that has just come
            visits.aborted.add(victim.id)
            commands.append(Cancel(victim.id, "cancelled", source.choice([-1, 0, 2])))
        if number % 40 == 0:
            commands.append(Forget(source.choice(CONVERSATIONS)))
        if number % 100 == 99:
            driver.run()  # an idle core gives its memory back
        stats = driver.step(*commands).stats
        visits.steps_by_class.update(name for name in CLASSES if getattr(stats, f"blocks_{name}"))
        for ended in [one for one in live if one.id in driver.finished]:
            visitors.remember(ended, driver.ids(ended))
            live.remove(ended)
    driver.run()
    return visits
