"""The bench of all engines still runs, against our engine with a tiny model and peers that are made up, and its page
tells what came out. Numbers of a small run mean nothing."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import NoReturn

import pytest

from tests.bench.engines import report, results
from tests.bench.engines.__main__ import CHOICES, FIGURES, PAGE, main
from tests.bench.engines.asks import STOP
from tests.bench.engines.every import ENGINES, Entry
from tests.bench.engines.gateway import Gateway
from tests.bench.engines.goals import LLAMA, OURS, OWN, VLLM
from tests.bench.engines.ours import Ours, Site
from tests.bench.engines.report import Label
from tests.bench.engines.results import Results
from tests.bench.engines.workloads import WORKLOADS, Round
from tests.bench.fake_engine import FakeEngine

NUM_WARM_UP = 4


def run(tiny: Path, folder: Path, engines: dict[str, Entry], *arguments: str) -> Results:
    """A quick run that writes below `folder`, and everything that is known after it."""
    page = folder / "benchmarks.md"
    if not page.is_file():
        page.write_text(PAGE.read_text(encoding="utf-8"), encoding="utf-8")
    places = [f"--page={page}", f"--json={folder / 'b.json'}", f"--pictures={folder}"]
    assert main(["--quick", "--model", str(tiny), *places, *arguments], engines) == 0
    return results.read(folder / "b.json")


def entry(engine: FakeEngine | Ours | Site | Gateway) -> Entry:
    return Entry(Label(f"a {engine.peer}", engine.peer), engine)


def test_ours_and_two_peers_are_asked_the_same_and_a_page_tells_it(tiny: Path, tmp_path: Path) -> None:
    vllm, llama = FakeEngine("vllm"), FakeEngine("llamacpp")
    engines = {OURS: entry(Ours("fp32")), VLLM: entry(vllm), LLAMA: entry(llama)}
    known = run(
        tiny,
        tmp_path,
        engines,
        *(f"--workload={name}" for name in CHOICES if name not in (OWN, "d", "capacity")),
    )
    assert set(known.engines) == set(engines)
    assert all(set(measured.figures) == {"a", "b", "c", "e"} for measured in known.engines.values())
    assert [body["prompt"] for body in vllm.received] == [body["prompt"] for body in llama.received]
    assert {tuple(body["stop"]) for body in vllm.received + llama.received} == {(STOP,)}
    page = (tmp_path / "benchmarks.md").read_text(encoding="utf-8")
    assert page.count("tok/s against the faster of the two | 1.3x | 1.6x") == 1
    assert "ours-int8 was not run" in page
    assert "## How it is measured" in page
    for picture in tmp_path.glob("*.svg"):
        ET.parse(picture)


def test_the_gateway_is_measured_over_another_engine_with_the_ids_that_this_one_is_asked_for_alone(
    tiny: Path, tmp_path: Path
) -> None:
    alone, upstream = FakeEngine("vllm"), FakeEngine("vllm", "gateway")
    engines = {VLLM: entry(alone), "gateway-vllm": entry(Gateway(upstream.open))}
    known = run(tiny, tmp_path, engines, "--workload=b")
    assert all(set(measured.figures) == {"b"} for measured in known.engines.values())
    prompts = {tuple(body["prompt"]) for body in upstream.received if body.get("min_tokens")}
    assert prompts == {tuple(body["prompt"]) for body in alone.received}


def test_a_run_of_one_peer_keeps_what_others_found(tiny: Path, tmp_path: Path) -> None:
    engines = {VLLM: entry(FakeEngine("vllm", "one")), LLAMA: entry(FakeEngine("llamacpp", "two"))}
    run(tiny, tmp_path, {VLLM: engines[VLLM]}, "--workload=a")
    known = run(tiny, tmp_path, {LLAMA: engines[LLAMA]}, "--workload=c")
    assert (set(known.of(VLLM).figures), set(known.of(LLAMA).figures)) == ({"a"}, {"c"})


def test_a_peer_that_does_not_start_is_told_with_its_reason(tiny: Path, tmp_path: Path) -> None:
    run(tiny, tmp_path, {VLLM: entry(FakeEngine(absence="not installed: make peer-x"))}, "--workload=a")
    page = (tmp_path / "benchmarks.md").read_text(encoding="utf-8")
    assert "| a fake | not run: not installed: make peer-x |" in page
    assert f"{LLAMA} was not run, {VLLM} was not run (not installed: make peer-x) |" in page


def test_an_answer_of_another_length_fails_the_workload_and_the_next_engine_is_asked(
    tiny: Path, tmp_path: Path
) -> None:
    engines = {VLLM: entry(FakeEngine()), LLAMA: entry(FakeEngine("llamacpp"))}
    run(tiny, tmp_path, engines, "--workload=a")
    known = run(tiny, tmp_path, engines | {VLLM: entry(FakeEngine(num_whole=NUM_WARM_UP))}, "--workload=a")
    assert known.of(VLLM).absence.startswith("failed in a: 7 of 8 tokens came")
    assert (known.of(VLLM).figures, set(known.of(LLAMA).figures)) == ({}, {"a"})
    page = (tmp_path / "benchmarks.md").read_text(encoding="utf-8")
    assert f"{VLLM} was not run (failed in a: 7 of 8 tokens came" in page


def test_an_engine_that_fails_before_it_is_measured_was_not_run(tiny: Path, tmp_path: Path) -> None:
    known = run(tiny, tmp_path, {VLLM: entry(FakeEngine(num_whole=0))}, "--workload=a")
    assert known.of(
        VLLM
    ).absence == "its first answers failed: 5 of 6 tokens came, and then: {'choices': [], " + (
        "'usage': {'completion_tokens': 5}}"
    )


def test_a_run_that_is_broken_off_keeps_what_it_has(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken_off(_: Round) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setitem(WORKLOADS, "b", broken_off)
    with pytest.raises(KeyboardInterrupt):
        run(tiny, tmp_path, {VLLM: entry(FakeEngine())}, "--workload=a", "--workload=b")
    assert set(results.read(tmp_path / "b.json").of(VLLM).figures) == {"a"}


def test_the_open_loop_comes_at_one_rate_for_all_that_the_better_peer_can_take(
    tiny: Path, tmp_path: Path
) -> None:
    engines = {name: entry(FakeEngine(speaks)) for name, speaks in ((VLLM, "vllm"), (LLAMA, "llamacpp"))}
    known = run(tiny, tmp_path, {OURS: entry(FakeEngine()), **engines}, "--workload=d")
    most = max(known.figure(name, "capacity", "requests_per_s") or 0 for name in engines)
    assert {known.figure(name, "d", "per_s") for name in (OURS, VLLM, LLAMA)} == {0.8 * most}
    assert known.figure(OURS, "capacity", "requests_per_s") is None
    again = run(tiny, tmp_path, {VLLM: engines[VLLM]}, "--workload=d")
    assert again.figure(VLLM, "d", "per_s") == 0.8 * most


def test_the_open_loop_waits_for_a_peers_capacity(
    tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    known = run(tiny, tmp_path, {OURS: entry(FakeEngine())}, "--workload=d")
    assert known.of(OURS).figures == {}
    assert "d needs the capacity of a peer first" in capsys.readouterr().out


def test_a_quick_run_writes_nothing_of_its_own(tiny: Path) -> None:
    before = [file.read_bytes() if file.is_file() else b"" for file in (PAGE, FIGURES)]
    assert main(["--quick", "--model", str(tiny), "--workload=a"], {VLLM: entry(FakeEngine())}) == 0
    assert [file.read_bytes() if file.is_file() else b"" for file in (PAGE, FIGURES)] == before


def test_the_page_shows_what_was_found() -> None:
    labels = {name: entry.label for name, entry in ENGINES.items()}
    assert report.page(results.read(FIGURES), labels) in PAGE.read_text(encoding="utf-8"), "run: make bench"


@pytest.mark.slow
def test_the_site_is_asked_through_its_api(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_these_servers: dict[str, str]
) -> None:
    for name in ("TEST_DATABASE_URL", "TEST_REDIS_URL"):
        monkeypatch.setenv(name, on_these_servers[name])
    known = run(tiny, tmp_path, {OURS: entry(Site("fp32"))}, "--workload=a", "--workload=b")
    assert set(known.of(OURS).figures) == {"a", "b"}
    assert json.loads((tmp_path / "b.json").read_text())["engines"][OURS]["abouts"]["a"]["dtype"] == "fp32"


@pytest.mark.slow
def test_decode_is_set_against_the_machines_ceiling_and_against_neighbours(
    tiny: Path, tmp_path: Path
) -> None:
    known = run(tiny, tmp_path, {OURS: entry(Ours("fp32"))}, "--workload=own")
    figures = known.of(OWN).figures["own"]
    assert figures["batch_16_share"] == figures["batch_16_tokens_per_s"] / figures["ceiling_16_tokens_per_s"]
    assert figures["neighbours_ratio"] == figures["neighbours_step_ms"] / figures["alone_step_ms"]
    assert "beside two busy neighbours" in (tmp_path / "benchmarks.md").read_text(encoding="utf-8")
