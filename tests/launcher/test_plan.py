"""What one installation consists of."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from chatsite.launcher.config import LauncherConfig
from chatsite.launcher.plan import Place, child_environment, service_steps, site_plan
from chatsite.launcher.process import Identity
from chatsite.launcher.steps import Plan, Step, check_plan


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path, tmp_path / "run", Identity.KEEP)


def names(plan: Plan) -> list[str]:
    return [step.name for step in plan]


def step_called(plan: Plan, name: str) -> Step:
    return next(step for step in plan if step.name == name)


def test_the_whole_site_by_default(place: Place) -> None:
    plan, _ = site_plan(LauncherConfig(), place)
    check_plan(plan)
    assert names(plan) == [
        *("postgres", "valkey", "models", "engine", "migrate", "admin"),
        *("worker", "beat", "web"),
    ]


def test_the_engine_does_not_wait_for_the_database(place: Place) -> None:
    plan, _ = site_plan(LauncherConfig(), place)
    assert set(step_called(plan, "engine").after) == {"models"}
    assert step_called(plan, "models").after == ()


@pytest.mark.parametrize(
    ("config", "missing"),
    [
        (LauncherConfig(database_url="postgresql://db.internal/rill"), {"postgres"}),
        (LauncherConfig(redis_url="redis://broker.internal/0"), {"valkey"}),
        (LauncherConfig(engine_address="engine.internal:50051"), {"models", "engine"}),
    ],
)
def test_a_server_whose_address_is_given_is_not_started(
    config: LauncherConfig, missing: set[str], place: Place
) -> None:
    everything, _ = site_plan(LauncherConfig(), place)
    plan, _ = site_plan(config, place)
    check_plan(plan)
    assert set(names(everything)) - set(names(plan)) == missing


def test_only_the_engine_runs_at_full_priority(place: Place) -> None:
    plan, _ = site_plan(LauncherConfig(nice=7), place)
    engine = step_called(plan, "engine").command
    assert engine.nice == 0
    assert engine.environ["ENGINE_FRONT_NICE"] == "7"
    assert {step.command.nice for step in plan if step.name != "engine"} == {7}


def test_children_find_the_servers_that_were_started(place: Place) -> None:
    _, addresses = service_steps(LauncherConfig(), place)
    plan, _ = site_plan(LauncherConfig(), place)
    environ = step_called(plan, "web").command.environ
    assert environ["DATABASE_URL"] == addresses["DATABASE_URL"]
    assert environ["REDIS_URL"] == addresses["REDIS_URL"]
    assert environ["ENGINE_ADDRESS"] == f"unix:{place.runtime}/engine.sock"
    assert environ["DATA_DIR"] == str(place.data)


def test_given_secrets_win_over_generated_ones(place: Place) -> None:
    given = LauncherConfig(secret_key="given", engine_salt_key="salt")
    environ = child_environment(given, place, {}, os.environ)
    assert (environ["SECRET_KEY"], environ["ENGINE_SALT_KEY"]) == ("given", "salt")
    generated = child_environment(LauncherConfig(), place, {}, os.environ)
    assert generated["SECRET_KEY"] == (place.data / "secret-key").read_text().strip()


def test_guests_are_welcome_unless_told_otherwise(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CHAT_GUESTS", raising=False)
    assert child_environment(LauncherConfig(), place, {}, os.environ)["CHAT_GUESTS"] == "on"
    monkeypatch.setenv("CHAT_GUESTS", "off")
    assert child_environment(LauncherConfig(), place, {}, os.environ)["CHAT_GUESTS"] == "off"
