"""The rules on the trial model itself: fewer and shorter, because each of its tokens costs as much as a tiny answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from inference.config import EngineConfig
from inference.core.messages import SamplingSpec
from inference.core.startup import assemble
from inference.front.model_folder import read_model_folder
from inference.models.loader import LoadedModel, load_served
from inference.types import Segment
from tests.inference.core.driver import Driver, admit
from tests.inference.exactness import core_rules, front_rules
from tests.inference.exactness.evidence import Evidence, recorded

pytestmark = [pytest.mark.model, pytest.mark.slow]

QUESTIONS = ("Name one planet.", "Why is the sky blue? Answer in one sentence.", "Count from one to five.")


@pytest.fixture(scope="module")
def real_model(real_model_folder: Path) -> LoadedModel:
    return load_served(real_model_folder, "fp32", "cpu")


def make(model: LoadedModel, **fields: object) -> Driver:
    # What drafts change is tested on tiny models: here the rows of a step that holds any would differ by rounding only,
    # but by as much as the tolerance, and not on every run.
    config = EngineConfig(kv_memory_mb=64, speculate="off", **fields)  # type: ignore[arg-type]
    return Driver(assemble(config, model).loop)


def test_reuse_and_company_change_no_token_and_no_logit(
    real_model: LoadedModel, real_model_folder: Path
) -> None:
    """Three conversations of two turns in one batch, the second turn on kept KV, against each prompt alone."""
    served, evidence = read_model_folder(real_model_folder, None), Evidence()
    histories = [[Segment("user", question)] for question in QUESTIONS]
    samplings = [SamplingSpec(), SamplingSpec(temperature=0.8, seed=5), SamplingSpec()]
    driver, asked = make(real_model, step_tokens=32), []
    with recorded() as warm:
        for _ in range(2):
            requests = [
                admit(served.prompts.build(history).ids, max_tokens=8, conversation=bytes([n]), sampling=sampling)
                for n, (history, sampling) in enumerate(zip(histories, samplings, strict=True))
            ]  # fmt: skip
            driver.run(*requests)
            asked += requests
            for history, request in zip(histories, requests, strict=True):
                ids = tuple(driver.ids(request))
                text = served.tokenizer.decode(ids)
                history += [
                    Segment("assistant", text, ids, served.tokenizer.fingerprint),
                    Segment("user", "Go on."),
                ]
    second_turns = asked[len(QUESTIONS) :]
    for request in second_turns:
        assert driver.end(request).reused_head_tokens > 30
    for request in asked:
        with recorded() as cold:
            alone = make(real_model).generate(
                admit(request.prompt_ids, max_tokens=8, sampling=request.sampling)
            )
        core_rules.compare(request, driver.ids(request), alone, cold, evidence)
        warm.compare(cold, evidence)
    assert evidence.num_answers == 6
    assert evidence.num_rows >= 40
    assert evidence.num_near_ties == 0


def test_streams_and_typed_text_are_exact(real_model_folder: Path) -> None:
    served = read_model_folder(real_model_folder, None)
    assert front_rules.streams_join_to_the_whole(served).num_rows > 30
    assert front_rules.typed_text_never_becomes_control_tokens(served).num_answers == 21
