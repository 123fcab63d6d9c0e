"""The measurements of claims still run, with a tiny model and small sizes. Their numbers mean nothing here."""

from __future__ import annotations

import functools
import json
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from inference.models.tiny import write_tiny_model
from tests.bench.claims.__main__ import DOCS, main
from tests.bench.claims.every import CLAIMS
from tests.bench.claims.findings import Bars, Finding, Lines, Row
from tests.bench.claims.memory import KNOWN_MODELS
from tests.bench.claims.report import known_findings, render, write
from tests.bench.claims.rig import Rig
from tests.bench.claims.svg import draw


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Rig:
    torch.set_num_threads(1)
    folder = write_tiny_model(tmp_path_factory.mktemp("tiny") / "model")
    return Rig(folder, "fp32", rounds=1, is_quick=True)


@pytest.fixture(scope="module")
def measure(rig: Rig) -> Callable[[str], Finding]:
    """The finding of a claim, measured once."""
    return functools.cache(lambda name: CLAIMS[name](rig))


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    (tmp_path / "claims.md").write_text((DOCS / "claims.md").read_text())
    return tmp_path


@pytest.mark.parametrize("name", CLAIMS)
def test_every_claim_can_be_measured(measure: Callable[[str], Finding], name: str) -> None:
    finding = measure(name)
    assert finding.rows
    assert all(row.claim and row.ours and row.our_conditions for row in finding.rows)
    for picture in finding.pictures.values():
        ET.fromstring(draw(picture))


def test_what_does_not_depend_on_time_holds_with_any_model(measure: Callable[[str], Finding]) -> None:
    reads_only_new = measure("multi-turn").rows[1]
    memory = [row for row in measure("memory").rows if row.claim.startswith("KV of one token")]
    assert len(memory) == 3
    assert measure("shared-prompt").rows[1].holds is not None, "nothing was shared between users"
    assert all(row.holds for row in [reads_only_new, *memory])


def test_known_models_take_what_the_formula_says() -> None:
    kib = {name: shape.bytes_per_token("bf16") / 1024 for name, shape in KNOWN_MODELS.items()}
    assert (kib["SmolLM2-135M"], kib["Llama-2-7B"], kib["Llama-3-8B"]) == (22.5, 512, 128)


def test_a_run_writes_table_numbers_and_pictures_and_keeps_what_others_found(rig: Rig, docs: Path) -> None:
    row = Row("older claim", "none", "3 | 4", "ours", None)
    write({"older": Finding((row,), {"older": Bars("Older", "ms", (("a", 1.0),))})}, "machine one", docs)
    assert main(["batch-curve", "--quick", "--model", str(rig.folder), "--docs", str(docs)]) == 0
    page = (docs / "claims.md").read_text()
    assert "older claim" in page
    assert "3 \\| 4" in page
    assert "batching raises throughput" in page
    assert "## Common errors" in page
    assert set(json.loads((docs / "pictures" / "claims.json").read_text())) == {"older", "batch-curve"}
    assert {file.name for file in (docs / "pictures").glob("*.svg")} == {
        "claims-older.svg",
        "claims-batch-curve.svg",
    }


def test_a_quick_run_writes_nothing(rig: Rig, capsys: pytest.CaptureFixture[str]) -> None:
    before = (DOCS / "claims.md").read_text()
    assert main(["batch-curve", "--quick", "--model", str(rig.folder)]) == 0
    assert (DOCS / "claims.md").read_text() == before
    assert "tokens/s at a batch of 1" in capsys.readouterr().out


def test_an_unknown_claim_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["free-lunch"])
    assert "free-lunch" in capsys.readouterr().err


def test_the_page_shows_what_was_found() -> None:
    page = (DOCS / "claims.md").read_text()
    assert render(page, known_findings(DOCS)) == page, "run: make bench-claims"


@pytest.mark.parametrize(
    "picture",
    [
        Lines("A < B", "x", "ms", (("one", ((1, 0.5),)), ("two", ((1, 2.0), (8, 900.0)))), is_log_x=True),
        Bars("None", "ms", (("zero", 0.0),)),
    ],
)
def test_pictures_are_drawn_from_any_numbers(picture: Lines | Bars) -> None:
    root = ET.fromstring(draw(picture))
    assert "nan" not in draw(picture)
    assert root.attrib["aria-label"] == picture.title
