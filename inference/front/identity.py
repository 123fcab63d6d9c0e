"""Who this engine says it is: the facts of Info, joined from settings, model folder and core.

Knows which facts make two engines differ; does not know how they were found.
"""

from __future__ import annotations

import hashlib

from inference.config import EngineConfig
from inference.core.messages import CoreReady
from inference.front.model import ServedModel
from inference.gateway.address import parse_address
from inference.types import EngineInfo, TemplateFindings


def describe(
    engine: str,
    config: EngineConfig,
    model: ServedModel,
    core: CoreReady,
    max_context: int,
    template: TemplateFindings,
) -> EngineInfo:
    parts = (core.revision, model.tokenizer.fingerprint, model.template_fingerprint, core.dtype)
    return EngineInfo(
        engine=engine,
        model=model.name,
        revision=hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16],
        tokenizer=model.tokenizer.fingerprint,
        max_context=max_context,
        max_output_tokens=config.max_output_tokens,
        dtype=core.dtype,
        device=core.device,
        embedder=core.embedder,
        embedding_dim=core.embedding_dim,
        kv_bytes_per_token=core.kv_bytes_per_token,
        is_trial_model=model.is_trial,
        default_temperature=model.defaults.temperature,
        template=template,
        policy="priority" if config.upstream else config.policy,  # a gateway has one order only
        block_tokens=core.block_tokens,
        kv_budget_bytes=core.kv_budget_bytes,
        verifier=core.verifier,
        has_grammar=core.has_grammar,
        upstream=parse_address(config.upstream).shown if config.upstream else "",
    )
