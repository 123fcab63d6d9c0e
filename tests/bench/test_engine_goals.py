"""What the bench of engines says of its goals: reached or not, by how much, and what is missing."""

from __future__ import annotations

import pytest

from tests.bench.engines import report
from tests.bench.engines.every import ENGINES
from tests.bench.engines.goals import GOALS, OWN, Goal, verdict
from tests.bench.engines.report import Label
from tests.bench.engines.results import Results

MACHINE = {"machine": "one"}


def found(**figures: float) -> Results:
    known = Results()
    for name, value in figures.items():
        known.of(name.replace("_", "-")).add("w", [{"f": value}], MACHINE)
    return known


RATE = Goal("w", "f", "rate", 1.1, 1.6, ("one", "two"), "ours")
TIME = Goal("w", "f", "time", 0.9, 0.6, ("one", "two"), "ours", is_time=True)


def test_the_better_peer_counts_whichever_way_is_better() -> None:
    known = found(ours=12, one=10, two=20)
    assert (verdict(RATE, known).value, verdict(RATE, known).best_peer) == (0.6, "two")
    assert (verdict(TIME, known).value, verdict(TIME, known).best_peer) == (1.2, "one")


@pytest.mark.parametrize(
    ("goal", "ours", "outcome"),
    [
        (RATE, 32, "floor reached by 45%, stretch reached by 0%"),
        (RATE, 24, "floor reached by 9%, stretch **missed** by 25%"),
        (RATE, 20, "floor **missed** by 9%, stretch **missed** by 38%"),
        (TIME, 5, "floor reached by 44%, stretch reached by 17%"),
        (TIME, 18, "floor **missed** by 100%, stretch **missed** by 200%"),
    ],
)
def test_a_row_says_by_how_much(goal: Goal, ours: float, outcome: str) -> None:
    assert report.line(verdict(goal, found(ours=ours, one=10, two=20))).endswith(f"| {outcome} |")


def test_a_goal_is_not_reached_while_one_of_its_peers_was_not_run() -> None:
    known = found(ours=100, one=10)
    assert not verdict(RATE, known).is_reached
    assert "**not reached**: two was not run" in report.line(verdict(RATE, known))


def test_figures_of_two_machines_or_two_rates_are_not_compared() -> None:
    known = found(ours=100, one=10, two=10)
    known.of("two").abouts["w"] = {"machine": "another"}
    assert verdict(RATE, known).missing == "measured on different machines"
    known = found(ours=100, one=10, two=10)
    known.of("two").figures["w"]["per_s"] = 2.0
    assert verdict(RATE, known).missing == "measured at different rates of arrivals"


def test_the_stretch_of_another_engine_of_ours_needs_it() -> None:
    goal = Goal("w", "f", "rate", 1.1, 1.6, ("one",), "ours", stretch_ours="ours-more")
    assert "stretch **not reached**: ours-more was not run" in report.line(
        verdict(goal, found(ours=20, one=10))
    )
    known = found(ours=12, one=10, ours_more=17)
    assert report.line(verdict(goal, known)).endswith("| floor reached by 9%, stretch reached by 6% |")


def test_memory_and_start_are_plain_numbers() -> None:
    known = found(ours=1)
    known.of("ours").memory_mib, known.of("ours").cold_start_s = 3261.4, 84.06
    known.of("ours").figures["a"] = {"tokens_per_s": 468.2}
    assert "| Ours | 468 |" in (page := report.page(known, {"ours": Label("Ours", "ours")}))
    assert "| 3261 | 84.1 |" in page


def test_medians_stand_for_rounds() -> None:
    known = Results()
    known.of("one").add("w", [{"f": 1.0}, {"f": 9.0}, {"f": 2.0}], MACHINE)
    assert known.figure("one", "w", "f") == 2.0


def test_every_engine_that_a_goal_names_can_be_measured_or_is_ours_to_come() -> None:
    named = {name for goal in GOALS for name in (goal.ours, goal.stretch_ours, *goal.peers) if name}
    assert named - set(ENGINES) == {OWN}
