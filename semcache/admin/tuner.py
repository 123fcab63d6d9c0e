"""What another threshold would do to a rule, told by the log of its look-ups by meaning.

A look-up counts as served at a threshold when its nearest stored question was at least so alike and the guard found no
difference. Below the rule's lower threshold the guard was not asked, so nothing is said about it there. Wrong hits are
those of answers that staff have marked as wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType

from semcache.admin.acts import WRONG_HIT
from semcache.decision import Outcome
from semcache.models import CacheEntry, CacheLook, CacheRule

NUM_LOOKS = 1000
STEP = 0.005
# Bars of the histogram from here to 1; what is less alike stands in the first.
LOWEST = 0.80
NUM_BARS = 40
WIDTH, HEIGHT = 800, 200


@dataclass(frozen=True, slots=True)
class Seen:
    """One look-up by meaning."""

    similarity: float
    is_hit: bool
    is_guarded: bool
    is_wrong: bool


@dataclass(frozen=True, slots=True)
class Point:
    """What a threshold would have served, of all `Seen`."""

    threshold: float
    num_served: int
    rate: float
    num_wrong: int


@dataclass(frozen=True, slots=True)
class Block:
    """A coloured part of a bar, in the picture's units."""

    kind: str
    x: int
    y: int
    height: int


@dataclass(frozen=True, slots=True)
class Bar:
    """Look-ups whose similarity lies in one step from `low`; the blocks stand on each other."""

    low: float
    num_hits: int
    num_misses: int
    num_guarded: int
    blocks: tuple[Block, ...]


def seen_by(rule: CacheRule) -> list[Seen]:
    """The rule's last look-ups that had a neighbour, newest first."""
    looks = (
        CacheLook.objects.filter(rule=rule, similarity__isnull=False)
        .exclude(outcome=Outcome.HIT_EXACT)
        .order_by("-id")
        .values_list("similarity", "outcome", "is_guarded", "neighbour")[:NUM_LOOKS]
    )
    rows = list(looks)
    wrong = _marked_wrong({neighbour for *_, neighbour in rows})
    return [
        Seen(similarity, outcome == Outcome.HIT_SEMANTIC, is_guarded, neighbour in wrong)
        for similarity, outcome, is_guarded, neighbour in rows
        if similarity is not None
    ]


def curve(seen: Sequence[Seen], lowest: float) -> list[Point]:
    """One point for each step from `lowest` to 1."""
    num_steps = int((1 - lowest) / STEP + 1e-9)
    return [_point(seen, round(lowest + number * STEP, 6)) for number in range(num_steps + 1)]


def bars(seen: Sequence[Seen]) -> list[Bar]:
    """The histogram, scaled to its highest bar."""
    groups: list[list[Seen]] = [[] for _ in range(NUM_BARS)]
    for one in seen:
        place = int((one.similarity - LOWEST) / STEP + 1e-9)
        groups[min(max(place, 0), NUM_BARS - 1)].append(one)
    highest = max(1, *map(len, groups))
    return [_bar(number, group, highest) for number, group in enumerate(groups)]


def _point(seen: Sequence[Seen], threshold: float) -> Point:
    served = [one for one in seen if one.similarity >= threshold - 1e-9 and not one.is_guarded]
    rate = len(served) / len(seen) if seen else 0.0
    return Point(threshold, len(served), rate, sum(one.is_wrong for one in served))


def _bar(number: int, group: Sequence[Seen], highest: int) -> Bar:
    num_hits = sum(one.is_hit for one in group)
    num_guarded = sum(one.is_guarded and not one.is_hit for one in group)
    counts = {"hit": num_hits, "miss": len(group) - num_hits - num_guarded, "guarded": num_guarded}
    blocks, top, x = [], HEIGHT, number * WIDTH // NUM_BARS
    for kind, count in counts.items():
        height = round(count * HEIGHT / highest)
        top -= height
        if height:
            blocks.append(Block(kind, x, top, height))
    return Bar(round(LOWEST + number * STEP, 6), num_hits, counts["miss"], num_guarded, tuple(blocks))


def _marked_wrong(entry_ids: set[int | None]) -> set[int]:
    marks = LogEntry.objects.filter(
        content_type=ContentType.objects.get_for_model(CacheEntry),
        change_message__startswith=WRONG_HIT,
        object_id__in=[str(entry_id) for entry_id in entry_ids],
    )
    return {int(str(entry_id)) for entry_id in marks.values_list("object_id", flat=True)}
