"""From model folders to a warm core.

Knows how parts are sized and joined, and what is run once before the core calls itself ready. Does not know the
process around it (`__main__`).
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from inference.config import EngineConfig
from inference.core.books import Bounds
from inference.core.disk_record import BlockLayout
from inference.core.disk_store import DiskStore
from inference.core.disk_tier import disk_folder, open_disk_tier
from inference.core.forward import Forward
from inference.core.grammars import Grammars
from inference.core.kv_cache import BlockActions, KvCache
from inference.core.lane import Lane, LaneLimits
from inference.core.limits import Limits
from inference.core.loop import CoreLoop, CoreParts
from inference.core.messages import Admit, Command, CoreReady, EmbedTexts, SamplingSpec, VerifyPairs
from inference.core.prefix import PrefixCache
from inference.core.retention import Lifetimes
from inference.core.runner import Runner
from inference.core.scheduler import Scheduler
from inference.core.second_tier import BlockBytes, SecondTier
from inference.core.speculation import Speculation
from inference.models.device_memory import meter_of
from inference.models.embedder import Embedder
from inference.models.encoders import load_encoders
from inference.models.errors import ModelNotUsable
from inference.models.fused.choice import kernels_for
from inference.models.kv_tensors import KvShape, KvTensors
from inference.models.loader import LoadedModel, load_served
from inference.models.precision import dtype_name
from inference.models.verifier import Verifier

MIN_CONTEXT = 64  # a pool that can't hold even this much serves nobody
WARM_UP_PROMPT_TOKENS = 24
WARM_UP_OUTPUT_TOKENS = 4

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Core:
    """A loop and what it tells the front about itself."""

    loop: CoreLoop
    ready: CoreReady


def start_core(
    config: EngineConfig,
    model_folder: Path,
    embed_folder: Path | None,
    say: Say,
    verify_folder: Path | None = None,
    salt_id: str = "",
) -> Core:
    """Load, join and warm everything. Raises ModelNotUsable with one line that people can act on."""
    say(f"loading {model_folder.name}")
    kernels = kernels_for(config.kernels, config.data_dir)
    model = load_served(model_folder, config.dtype, config.device, config.layers, config.weights, kernels)
    say(model.network.description)
    encoders = load_encoders(embed_folder, verify_folder, config.device, say=say)
    core = assemble(config, model, encoders.embedder, encoders.verifier, salt_id=salt_id)
    say("warming up")
    warm_up(core.loop, has_embedder=embed_folder is not None, has_verifier=verify_folder is not None)
    return core


def assemble(
    config: EngineConfig,
    model: LoadedModel,
    embedder: Embedder | None = None,
    verifier: Verifier | None = None,
    *,
    num_blocks: int = 0,
    salt_id: str = "",
) -> Core:
    """Join the parts around a loaded model; nothing has run yet. `num_blocks` 0 fills the memory budget.

    `salt_id` tells the key of the salts from others; what another key's engine left on disk is erased.
    """
    shape = KvShape(model.num_layers, model.num_kv_heads, model.head_dim, config.block_tokens, model.dtype)
    num_blocks = num_blocks or config.kv_memory_mb * 1024 * 1024 // shape.bytes_per_block
    max_context = min(
        config.max_context or model.max_context, model.max_context, num_blocks * config.block_tokens
    )
    if max_context < MIN_CONTEXT:
        raise ModelNotUsable(
            f"ENGINE_KV_MEMORY_MB={config.kv_memory_mb} holds {num_blocks} blocks of {config.block_tokens} tokens "
            f"at {shape.bytes_per_token} bytes per token: too few for any answer"
        )
    tensors = _kv_tensors(config, shape, num_blocks, torch.device(model.device))
    kv = _kv_cache(config, tensors, num_blocks, model.fingerprint)
    scheduler = Scheduler(kv, Limits.of(config))
    scheduler.speculation = Speculation(config.speculate, max_context)
    if config.kv_disk_mb:
        scheduler.second_tier = _second_tier(config, tensors, kv, scheduler, salt_id)
    grammars = Grammars()
    parts = CoreParts(
        forward=Forward(Runner(model.network, tensors), grammars),
        kv=kv,
        scheduler=scheduler,
        lane=Lane(
            LaneLimits.of(config),
            embed=embedder.embed_ids if embedder else None,
            dim=embedder.dim if embedder else 0,
            verify=verifier.score_ids if verifier else None,
        ),
        bounds=Bounds(max_context, model.vocab_size, shape.bytes_per_block),
        clock=time.monotonic,
        grammars=grammars,
        shared_overlap=config.shared_overlap,
        device_bytes=meter_of(model.device),
    )
    ready = CoreReady(
        revision=model.fingerprint,
        max_context=max_context,
        dtype=model.precision,
        device=model.device,
        kv_bytes_per_token=shape.bytes_per_token,
        block_tokens=config.block_tokens,
        blocks_total=num_blocks,
        kv_budget_bytes=num_blocks * shape.bytes_per_block,
        embedder=embedder.tag if embedder else "",
        embedding_dim=embedder.dim if embedder else 0,
        embed_prefix=embedder.prefix if embedder else "",
        embed_max_tokens=embedder.max_tokens if embedder else 0,
        supports_verify=verifier is not None,
        verifier=verifier.tag if verifier else "",
        verify_max_tokens=verifier.max_tokens if verifier else 0,
    )
    return Core(CoreLoop(parts), ready)


def _kv_tensors(config: EngineConfig, shape: KvShape, num_blocks: int, device: torch.device) -> KvTensors:
    """The memory of the pool. An accelerator's is one slab, taken at once; a CPU's comes slab by slab."""
    slab_blocks = (
        config.kv_slab_mb * 1024 * 1024 // shape.bytes_per_block if device.type == "cpu" else num_blocks
    )
    try:
        return KvTensors(shape, num_blocks, device, slab_blocks=min(max(1, slab_blocks), num_blocks))
    except (OSError, MemoryError, RuntimeError) as error:  # torch says the last where an accelerator is full
        raise ModelNotUsable(
            f"there is no room for ENGINE_KV_MEMORY_MB={config.kv_memory_mb}: {error}"
        ) from error


def _kv_cache(config: EngineConfig, tensors: KvTensors, num_blocks: int, fingerprint: str) -> KvCache:
    actions = BlockActions(
        copy=tensors.copy_block,
        wipe=tensors.wipe_block,
        give_back=tensors.give_back if tensors.is_elastic else None,
    )
    return KvCache(
        num_blocks,
        PrefixCache(fingerprint.encode(), config.block_tokens),
        actions,
        lifetimes=Lifetimes(config.kv_active_s, config.kv_soft_ttl_s),
        slab_blocks=tensors.slab_blocks,
    )


def _second_tier(
    config: EngineConfig, tensors: KvTensors, kv: KvCache, scheduler: Scheduler, salt_id: str
) -> SecondTier | None:
    """Disk for what memory evicts; None, with a line in the log, when the folder cannot be used."""
    shape, fingerprint = tensors.shape, kv.prefix.fingerprint.decode()
    layout = BlockLayout(
        fingerprint,
        dtype_name(shape.dtype),
        (2 * shape.num_layers, shape.kv_heads, shape.block_tokens, shape.head_dim),
        shape.bytes_per_block,
    )
    store = DiskStore(
        disk_folder(Path(config.data_dir), fingerprint), layout, config.kv_disk_mb * 1024 * 1024
    )
    disk = open_disk_tier(store, salt_id or secrets.token_hex(16))
    if disk is None:
        return None
    block_bytes = BlockBytes(read=tensors.read_block, write=tensors.write_block)
    return SecondTier(kv, disk, block_bytes, lambda: scheduler.pacer.prefill_tokens_per_s)


def warm_up(loop: CoreLoop, has_embedder: bool, has_verifier: bool = False) -> None:
    """One short answer, one vector and one score through the whole path, so that a model that can't run fails here.

    Leaves nothing behind: the blocks are forgotten and the counters start again.
    """
    vocabulary = list(range(WARM_UP_PROMPT_TOKENS))
    sampling = SamplingSpec(temperature=1.0, top_p=0.9, seed=1)
    request = Admit(
        "warm-up", vocabulary, sampling, WARM_UP_OUTPUT_TOKENS, [], salt=b"", conversation=b"warm-up"
    )
    commands: list[Command] = [request]
    if has_embedder:
        commands.append(EmbedTexts("warm-up", [vocabulary]))
    if has_verifier:
        commands.append(VerifyPairs("warm-up", [vocabulary]))
    packs = list(loop.step(commands))
    while loop.has_work:
        packs += loop.step()
    errors = [end.error for pack in packs for end in pack.finished if end.error]
    errors += [answer.error for pack in packs for answer in pack.embedded if answer.error]
    errors += [answer.error for pack in packs for answer in pack.verified if answer.error]
    if errors:
        raise ModelNotUsable(f"the model does not run here: {errors[0]}")
    loop.reset()
