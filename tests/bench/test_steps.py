from __future__ import annotations

from typing import Any

import pytest
import torch

from inference.models.fused.kernels import PlainKernels
from inference.models.loader import load_served
from inference.models.tiny import write_tiny_model
from tests.bench.engines import steps


@pytest.fixture
def model(tmp_path: Any) -> Any:
    return load_served(write_tiny_model(tmp_path / "model"), "fp32", "cpu")


@pytest.mark.parametrize("step", [steps.Step(3, 40), steps.Step(3, 40, num_shared=32), steps.Step(1, 0, 20)])
def test_a_step_is_measured_in_every_form(model: Any, step: steps.Step) -> None:
    line = steps.measure(model, [PlainKernels(), PlainKernels()], step)
    assert line.startswith(f"| {step} | ")
    assert "matrices and rest" in line
    assert "attend" in line


def test_a_prompt_is_the_same_whole_or_by_tokens(model: Any) -> None:
    tensors = steps.KvTensors(
        steps.KvShape(model.num_layers, model.num_kv_heads, model.head_dim, 16, model.dtype),
        4,
        torch.device("cpu"),
    )
    with torch.inference_mode():
        whole = model.network(*steps.arguments(steps.Step(1, 0, 33), tensors))
        ids, positions, batch, last = steps.arguments(steps.Step(1, 32), tensors)
        ids = torch.tensor([32 * 7919 % 251])
        torch.testing.assert_close(model.network(ids, positions, batch, last), whole, rtol=0, atol=1e-4)
