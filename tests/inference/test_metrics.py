from __future__ import annotations

from dataclasses import fields

from prometheus_client import CollectorRegistry, generate_latest

from inference.metrics import PREFIX, EngineCollector
from inference.types import EngineStats


def test_every_number_of_stats_is_shown_once() -> None:
    names = [field.name for field in fields(EngineStats) if field.name != "shared_prefixes"]
    numbers = {name: number for number, name in enumerate(names, start=10)}
    registry = CollectorRegistry()
    registry.register(EngineCollector(lambda: EngineStats(**(numbers | {"is_ready": True, "reason": ""}))))
    lines = generate_latest(registry).decode().splitlines()
    shown = dict(line.split(" ") for line in lines if not line.startswith("#"))
    assert shown.pop(f"{PREFIX}ready") == "1.0"
    expected = {name: float(number) for name, number in numbers.items() if name not in ("is_ready", "reason")}
    assert {
        name.removeprefix(PREFIX).removesuffix("_total"): float(value) for name, value in shown.items()
    } == {name.removesuffix("_total"): value for name, value in expected.items()}
