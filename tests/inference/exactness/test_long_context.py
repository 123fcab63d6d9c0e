"""A prompt of more than 2^15 tokens, read in chunks beside a running stream, is answered like a whole one."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import torch

from inference.config import EngineConfig
from inference.core.startup import assemble
from inference.models.loader import load_causal_lm, load_served
from inference.models.tiny import write_tiny_model
from tests.inference.core.driver import Driver, admit
from tests.inference.exactness.evidence import LOGIT_TOLERANCE, recorded

NUM_PROMPT = 33_000  # past 32,768, where the usual windows and 16-bit positions end
NUM_ANSWER = 4


@pytest.mark.slow
def test_thirty_three_thousand_tokens_in_chunks_are_exact(tmp_path: Path) -> None:
    torch.set_num_threads(1)
    # One layer sees the whole prompt: what is wrong far back shows in the last row. Two heads on one KV head are the
    # least that share one, and what takes the time grows with the heads.
    shape = {"num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1, "hidden_size": 32}
    folder = write_tiny_model(tmp_path / "model", max_position_embeddings=65_536, **shape)
    model = load_served(folder, "fp32", "cpu")
    driver = Driver(assemble(EngineConfig(kv_memory_mb=64, step_tokens=2048), model).loop)
    source = random.Random(40)
    prompt = [source.randrange(3, 300) for _ in range(NUM_PROMPT)]
    stream = admit(prompt[:10], max_tokens=60)
    driver.step(stream)
    with recorded() as logits:
        request = admit(prompt, max_tokens=NUM_ANSWER, conversation=b"long")
        driver.step(request)
        while not driver.ids(request):
            assert {token.id for token in driver.step().tokens} >= {stream.id} - driver.finished.keys()
        driver.run()
    answer = driver.ids(request)
    assert driver.end(request).prefilled_tokens == NUM_PROMPT
    assert len([report for report in driver.progress if report.id == request.id]) >= NUM_PROMPT // 2048

    plain = load_causal_lm(folder, "fp32", "cpu", "sdpa").model
    with torch.inference_mode():
        rows = plain(torch.tensor([[*prompt, *answer]]), logits_to_keep=NUM_ANSWER + 1).logits[0]
    assert rows[:-1].argmax(-1).tolist() == answer
    for place in range(NUM_ANSWER):
        ours = logits.rows[(*prompt, *answer[:place])]
        assert float((ours - rows[place]).abs().max()) <= LOGIT_TOLERANCE

    follow_up = admit([*prompt, *answer, 5, 6, 7], max_tokens=2, conversation=b"long")
    driver.generate(follow_up)
    assert driver.end(follow_up).prefilled_tokens == 3 + 1
