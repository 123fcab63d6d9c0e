"""What a forward is to the runner: token ids and positions in, logits after the wanted rows out.

Two kinds do it: transformers' own modules through the attention interface (here), for every family that the loader
takes, and our fused layers (`fused`) for Llama-shaped ones. The same runner, the same KV and the same tests for both.
"""

from __future__ import annotations

from typing import Any, Protocol

import torch

from inference.models.attention import AttentionNotUsable, RaggedBatch


class Network(Protocol):
    """A causal LM over paged KV."""

    @property
    def description(self) -> str:
        """Which code runs the layers, in a few words for the log and the admin."""
        ...

    def __call__(
        self, token_ids: torch.Tensor, positions: torch.Tensor, batch: RaggedBatch, rows: torch.Tensor
    ) -> torch.Tensor:
        """Logits (num_rows, vocabulary) fp32 after the tokens `rows` of the batch.

        `token_ids` and `positions` are (num_tokens,), the sequences of the batch one behind the other. Keys and
        values of all tokens are written to their slots. Raises AttentionNotUsable where they were not.
        """
        ...


class TransformersNetwork:
    """A model of transformers, loaded with `attention.ATTENTION_NAME`."""

    def __init__(self, model: Any) -> None:
        self._model = model

    @property
    def description(self) -> str:
        return "layers of transformers"

    def __call__(
        self, token_ids: torch.Tensor, positions: torch.Tensor, batch: RaggedBatch, rows: torch.Tensor
    ) -> torch.Tensor:
        output = self._model(
            input_ids=token_ids[None],
            position_ids=positions[None],
            cache=batch,
            use_cache=True,
            ragged=batch,
            logits_to_keep=rows,
        )
        num_layers = batch.tensors.shape.num_layers
        if batch.num_updates != num_layers:
            raise AttentionNotUsable(f"{batch.num_updates} of {num_layers} layers wrote their keys")
        logits: torch.Tensor = output.logits[0]
        return logits.float()
