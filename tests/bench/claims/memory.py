"""Claims about the memory of a token's KV: the formula, what the pool really takes, what is said of known models.

Shapes of known models are those of their published config.json files.
"""

from __future__ import annotations

import gc
from dataclasses import dataclass

import torch

from tests.bench.claims.findings import Bars, Finding, Row
from tests.bench.claims.rig import Player, Rig, ask

KIB, GIB = 1024, 1024**3
BYTES = {"fp32": 4, "bf16": 2, "fp16": 2}
TOLERANCE = 0.01


@dataclass(frozen=True, slots=True)
class Shape:
    """What decides the size of a token's KV."""

    layers: int
    kv_heads: int
    head_dim: int

    def bytes_per_token(self, dtype: str) -> int:
        return 2 * self.layers * self.kv_heads * self.head_dim * BYTES[dtype]


KNOWN_MODELS = {
    "SmolLM2-135M": Shape(30, 3, 64),
    "Qwen2.5-7B": Shape(28, 4, 128),
    "Mistral-7B": Shape(32, 8, 128),
    "Llama-3-8B": Shape(32, 8, 128),
    "Llama-3-70B": Shape(80, 8, 128),
    "Llama-2-7B": Shape(32, 32, 128),
}


def measure(rig: Rig) -> Finding:
    sizes = {name: shape.bytes_per_token("fp16") / KIB for name, shape in KNOWN_MODELS.items()}
    return Finding(
        rows=(*(_measured(rig, dtype) for dtype in BYTES), *_corrected()),
        pictures={
            "memory": Bars("KV of one token in 16 bits, by the formula", "KiB", tuple(sizes.items())),
        },
    )


def _measured(rig: Rig, dtype: str) -> Row:
    model = rig.model(dtype)
    shape = Shape(model.num_layers, model.num_kv_heads, model.head_dim)
    num_blocks = rig.size(48, 8)
    before = _storages()  # held, so that nothing of it is freed or reused meanwhile
    core = rig.core(dtype, num_blocks=num_blocks)
    num_slots = core.ready.blocks_total * core.ready.block_tokens
    Player(core.loop).run(ask(rig.ids(num_slots - 2), 1))  # every block has been written
    new = [storage for place, storage in _storages().items() if place not in before]
    found = sum(storage.nbytes() for storage in new) / num_slots
    formula = shape.bytes_per_token(dtype)
    return Row(
        f"KV of one token in {dtype}: 2 x layers x KV heads x head size x bytes",
        "the formula",
        f"{found / KIB:.2f} KiB measured, {formula / KIB:.2f} KiB by the formula",
        f"a full pool of {num_slots} tokens; {shape.layers} layers, {shape.kv_heads} KV heads of {shape.head_dim}",
        abs(found / formula - 1) <= TOLERANCE,
    )


def _storages() -> dict[int, torch.UntypedStorage]:
    """The memory of all tensors that are alive, by its place; shared memory counts once.

    Without matrices that oneDNN has packed, which tell no place.
    """
    gc.collect()
    # By type: asking some of torch's own objects for their class warns.
    tensors = [thing for thing in gc.get_objects() if issubclass(type(thing), torch.Tensor)]
    known = [tensor.untyped_storage() for tensor in tensors if tensor.layout is torch.strided]
    return {storage.data_ptr(): storage for storage in known}


def _corrected() -> list[Row]:
    """Sentences that are copied from article to article, held against the formula."""
    old = KNOWN_MODELS["Llama-2-7B"]
    half, full = old.bytes_per_token("fp16"), old.bytes_per_token("fp32")
    grouped = KNOWN_MODELS["Llama-3-8B"].bytes_per_token("fp16")
    named = f"2 x {old.layers} x {old.kv_heads} x {old.head_dim}"
    return [
        Row(
            '"one million tokens of a 7B model need about 4 GB in FP16"',
            "Llama-2-7B",
            f"{1_000_000 * half / GIB:.0f} GiB: {half / KIB:.0f} KiB for each token",
            f"{named} x 2 bytes",
            False,
        ),
        Row(
            '"a token of a 7B model takes about 1 MB"',
            "no precision named",
            f"{full / KIB:.0f} KiB in fp32, {half / KIB:.0f} KiB in fp16; with grouped KV heads (Llama-3-8B) "
            f"{grouped / KIB:.0f} KiB",
            f"{named} x 4 or 2 bytes; KV heads count, not attention heads",
            False,
        ),
    ]
