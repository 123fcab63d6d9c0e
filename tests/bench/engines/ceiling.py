"""`python -m tests.bench.engines.ceiling FOLDER NUM_TOKENS ...`: the most tokens a second that this machine's matrix
products allow the model in bf16, for steps of so many tokens; one JSON object.

Every weight has its own memory, as in the model, so that it is streamed for each step. What goes in together is one
product. Each product is measured by itself in both ways that torch has; the quicker one counts.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch.nn.functional import linear

from inference.front.model_folder import read_json

NUM_STEPS = 15
Shape = tuple[int, int]  # outputs, inputs


def shapes(config: dict[str, int]) -> list[Shape]:
    """Of all products of one step: the layers', and the head's."""
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    num_heads = config["num_attention_heads"]
    head_dim = config.get("head_dim") or hidden // num_heads
    attended = num_heads * head_dim
    layer = [
        (attended + 2 * config["num_key_value_heads"] * head_dim, hidden),
        (hidden, attended),
        (2 * inner, hidden),
        (hidden, inner),
    ]
    return layer * config["num_hidden_layers"] + [(config["vocab_size"], hidden)]


def tokens_per_s(all_shapes: Sequence[Shape], num_tokens: int) -> float:
    weights = [torch.randn(shape, dtype=torch.bfloat16) for shape in all_shapes]
    inputs = {
        num: torch.randn(num_tokens, num, dtype=torch.bfloat16) for num in {shape[1] for shape in all_shapes}
    }
    pairs = [(inputs[weight.shape[1]], weight) for weight in weights]

    def plain() -> None:
        for given, weight in pairs:
            linear(given, weight)

    if not torch.backends.mkldnn.is_available():
        return num_tokens / _seconds(plain)
    ops = torch.ops.mkldnn
    packed = [(given, ops._reorder_linear_weight(weight, num_tokens)) for given, weight in pairs]

    def prepacked() -> None:
        for given, weight in packed:
            ops._linear_pointwise(given, weight, None, "none", [], "")

    return num_tokens / min(_seconds(plain), _seconds(prepacked))


@torch.inference_mode()
def _seconds(step: Callable[[], None]) -> float:
    step()
    times = []
    for _ in range(NUM_STEPS):
        began_s = time.perf_counter()
        step()
        times.append(time.perf_counter() - began_s)
    return statistics.median(times)


if __name__ == "__main__":
    found = shapes(read_json(Path(sys.argv[1]) / "config.json"))
    print(json.dumps({num: tokens_per_s(found, int(num)) for num in sys.argv[2:]}))
