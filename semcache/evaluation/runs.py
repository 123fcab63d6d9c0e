"""One run for each set: read both halves, make trials, compute figures.

Knows which half chooses thresholds for which set, and what a rate of the set is a share of.
"""

from __future__ import annotations

from collections.abc import Callable

from semcache.evaluation import sets, trials
from semcache.evaluation.figures import PAIRS, REQUESTS, Halves, SetFigures, figures
from semcache.evaluation.sets import Labelled
from semcache.evaluation.vectors import Embed, Verify

Run = Callable[[Embed, Verify | None], SetFigures]

ASK_EVERY = 5  # of the train half: one in five is asked of the other four


def fow(embed: Embed, verify: Verify | None) -> SetFigures:
    tuned, test = (trials.of_pairs(sets.fow_pairs(half), embed, verify) for half in ("dev", "test"))
    return figures(Halves("fow pairs", tuned, test, PAIRS))


def conversations(embed: Embed, verify: Verify | None) -> SetFigures:
    tuned, test = (
        trials.of_conversations(sets.conversations(half), embed, verify) for half in ("dev", "test")
    )
    return figures(Halves("fow conversations", tuned, test, PAIRS))


def own(embed: Embed, verify: Verify | None) -> SetFigures:
    """Without a half to choose on: the thresholds are those of the fow pairs."""
    tuned = trials.of_pairs(sets.fow_pairs("dev"), embed, verify)
    return figures(
        Halves("own pairs, en and zh", tuned, trials.of_pairs(sets.own_pairs(), embed, verify), PAIRS)
    )


def paws(embed: Embed, verify: Verify | None) -> SetFigures:
    tuned, test = (trials.of_pairs(sets.paws_pairs(half), embed, verify) for half in ("train", "test"))
    return figures(Halves("PAWS-X zh", tuned, test, PAIRS))


def intents(name: str) -> Run:
    def run(embed: Embed, verify: Verify | None) -> SetFigures:
        train = sets.intents(name, "train")
        tuned = trials.of_intents(*split(train), embed, verify)
        test = trials.of_intents(train, sets.intents(name, "test"), embed, verify)
        return figures(Halves(name, tuned, test, REQUESTS, has_kinds=False))

    return run


def split(train: list[Labelled]) -> tuple[list[Labelled], list[Labelled]]:
    asked = train[::ASK_EVERY]
    return [question for place, question in enumerate(train) if place % ASK_EVERY], asked


RUNS: dict[str, Run] = {
    "fow": fow,
    "conversations": conversations,
    "own": own,
    "clinc150": intents("clinc150"),
    "banking77": intents("banking77"),
    "paws": paws,
}
QUICK = ("fow", "conversations", "own")
