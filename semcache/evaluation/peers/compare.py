"""The peers' lines for the table: jobs out, answers in, thresholds chosen and figures computed as for our own ways.

A peer has two lines in each set: as it ships, and at the threshold that serves most of the tuning half within the shown
bound. It is told the last message of a conversation, which is what it takes as a key.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from semcache.evaluation import sets
from semcache.evaluation.figures import PAIRS, REQUESTS, SHOWN_BOUND, Line, SetFigures, Shares
from semcache.evaluation.metrics import NEVER, Point, Rate, Trial, at, best_at, curve
from semcache.evaluation.runs import split
from semcache.evaluation.sets import OUT_OF_SCOPE, Labelled, Pair
from semcache.evaluation.vectors import Embed

ROOT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True, slots=True)
class Half:
    """What is stored and asked; `is_right` says of a stored and an asked place whether the answer fits."""

    stored: Sequence[str]
    asked: Sequence[str]
    is_right: Callable[[int, int], bool]
    is_pairs: bool


@dataclass(frozen=True, slots=True)
class Asked:
    """A set with the half that chooses thresholds and the half that gives figures."""

    name: str
    tuned: Half
    test: Half
    shares: Shares


def asked_of(name: str) -> Asked:
    match name:
        case "fow":
            return Asked("fow pairs", _pairs(sets.fow_pairs("dev")), _pairs(sets.fow_pairs("test")), PAIRS)
        case "own":
            return Asked(
                "own pairs, en and zh", _pairs(sets.fow_pairs("dev")), _pairs(sets.own_pairs()), PAIRS
            )
        case "paws":
            return Asked(
                "PAWS-X zh", _pairs(sets.paws_pairs("train")), _pairs(sets.paws_pairs("test")), PAIRS
            )
        case "conversations":
            return Asked("fow conversations", _last_messages("dev"), _last_messages("test"), PAIRS)
        case _:
            train = sets.intents(name, "train")
            return Asked(name, _intents(*split(train)), _intents(train, sets.intents(name, "test")), REQUESTS)


def answered(asked: Sequence[Asked], embed: Embed, python: Path) -> dict[str, Any]:
    """Every peer's lines for each set, as JSON keeps them. `python` is that of the peers' environment."""
    halves = [half for one in asked for half in (one.tuned, one.test)]
    names = [f"{one.name}, {half}" for one in asked for half in ("tuning half", "test half")]
    with TemporaryDirectory() as folder:
        for number, (name, half) in enumerate(zip(names, halves, strict=True)):
            _write_job(Path(folder), number, name, half, embed)
        subprocess.run([str(python), "-m", "semcache.evaluation.peers.ask", folder], cwd=ROOT, check=True)
        found = json.loads((Path(folder) / "found.json").read_text())
    return {
        one.name: [line for peer, told in found.items() for line in _lines(one, peer, told, 2 * number)]
        for number, one in enumerate(asked)
    }


def with_peers(figures: SetFigures, peers: dict[str, Any]) -> SetFigures:
    """The figures with the peers' lines after that of the common threshold."""
    first, *others = figures.lines
    return replace(figures, lines=(first, *map(_line, peers.get(figures.name, ())), *others))


def _pairs(pairs: Sequence[Pair]) -> Half:
    return Half(
        [pair.first for pair in pairs], [pair.second for pair in pairs], lambda _, n: pairs[n].is_same, True
    )


def _last_messages(half: str) -> Half:
    talks = sets.conversations(half)
    return _pairs([Pair(talk.first[-1], talk.second[-1], talk.is_same, talk.kind) for talk in talks])


def _intents(stored: Sequence[Labelled], asked: Sequence[Labelled]) -> Half:
    stored = [question for question in stored if question.intent != OUT_OF_SCOPE]
    return Half(
        [question.text for question in stored],
        [question.text for question in asked],
        lambda place, n: stored[place].intent == asked[n].intent,
        False,
    )


def _write_job(folder: Path, number: int, name: str, half: Half, embed: Embed) -> None:
    # In the same lists as `trials` embeds them, so that what is kept from there is found.
    if half.is_pairs:
        stored, asked = np.split(embed([*half.stored, *half.asked]), 2)
    else:
        stored, asked = embed(half.stored), embed(half.asked)
    np.save(folder / f"{number}.stored.npy", stored)
    np.save(folder / f"{number}.asked.npy", asked)
    job = {"name": name, "stored": half.stored, "asked": half.asked, "is_pairs": half.is_pairs}
    (folder / f"{number}.json").write_text(json.dumps(job))


def _lines(asked: Asked, peer: str, told: dict[str, Any], first_job: int) -> Iterable[dict[str, Any]]:
    tuned, test = told["jobs"][first_job], told["jobs"][first_job + 1]
    shipped = [Trial(1.0 if one["is_served"] else -NEVER, right) for one, right in _judged(asked.test, test)]
    served = at(1.0, shipped, asked.shares.totals_of(shipped))
    yield _as_json(f"{peer}, as shipped", None, replace(served, threshold=told["threshold"]))
    trials, others = _trials(asked.test, test), _trials(asked.tuned, tuned)
    chosen = best_at(SHOWN_BOUND, curve(others, asked.shares.totals_of(others))).threshold
    yield _as_json(peer, SHOWN_BOUND, at(chosen, trials, asked.shares.totals_of(trials)))


def _trials(half: Half, found: Sequence[dict[str, Any]]) -> list[Trial]:
    return [
        Trial(-NEVER if one["similarity"] is None else one["similarity"], right)
        for one, right in _judged(half, found)
    ]


def _judged(half: Half, found: Sequence[dict[str, Any]]) -> Iterable[tuple[dict[str, Any], bool]]:
    """A pair that differs stays a trap where nothing was found."""
    for number, one in enumerate(found):
        is_found = one["place"] is not None
        yield one, half.is_right(one["place"] if is_found else 0, number) and (is_found or half.is_pairs)


def _as_json(way: str, bound: float | None, point: Point) -> dict[str, Any]:
    rates = {"served": [point.served.num, point.served.total], "wrong": [point.wrong.num, point.wrong.total]}
    threshold = None if point.threshold == NEVER else point.threshold
    return {"way": way, "bound": bound, "threshold": threshold, **rates}


def _line(kept: dict[str, Any]) -> Line:
    threshold = NEVER if kept["threshold"] is None else kept["threshold"]
    point = Point(threshold, Rate(*kept["served"]), Rate(*kept["wrong"]))
    return Line(kept["way"], kept["bound"], point)
