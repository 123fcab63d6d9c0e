"""Every setting of the web and worker processes, with its default, range and meaning.

Read once by `chatsite.settings`; the engine's own settings are in `inference.config`.
"""

from __future__ import annotations

from dataclasses import dataclass

from inference.settings import setting


@dataclass(frozen=True, slots=True)
class WebConfig:
    """Settings of the Django processes: web, worker and beat."""

    # Servers
    database_url: str = setting(
        "DATABASE_URL",
        "",
        "PostgreSQL with pgvector: postgresql://user:pass@host:port/name. Empty under `make run`: embedded.",
        is_secret=True,
    )
    redis_url: str = setting(
        "REDIS_URL",
        "",
        "Redis-protocol server: redis://host:port/0 or unix:///path?db=0. Empty under `make run`: embedded.",
        is_secret=True,
    )
    port: int = setting("PORT", 8000, "Port of the web server.", between=(1, 65535))
    data_dir: str = setting("DATA_DIR", "data", "Folder for everything that is kept on disk.")
    secret_key: str = setting(
        "SECRET_KEY", "", "Django's signing key; `make run` makes and keeps one.", is_secret=True
    )
    debug: bool = setting("CHAT_DEBUG", False, "Django debug pages. Never on a reachable host.")

    # The engine's door
    engine_address: str = setting(
        "ENGINE_ADDRESS",
        "unix:data/run/engine.sock",
        "Where the engine listens: unix:/path or host:port. Several, comma separated, for several models or shares.",
    )
    engine_token: str = setting("ENGINE_TOKEN", "", "Bearer token for an engine behind TCP.", is_secret=True)
    engine_tls_cert: str = setting(
        "ENGINE_TLS_CERT", "", "PEM certificate to trust for an engine behind TCP."
    )
    engine_call_timeout_s: float = setting(
        "CHAT_ENGINE_TIMEOUT_S", 10.0, "Deadline of one call to the engine.", between=(0.1, 600)
    )
    engine_queue_gap: int = setting(
        "CHAT_ENGINE_QUEUE_GAP",
        8,
        "With several engines of one model: a conversation leaves the one that has its KV when so many more requests "
        "wait there than at the least busy one.",
        between=(1, 100_000),
    )

    # The site
    bind: str = setting("CHAT_BIND", "127.0.0.1", "Address the web server listens on.")
    tls_cert: str = setting(
        "CHAT_TLS_CERT",
        "",
        "PEM file with the certificate and its chain: the web server itself speaks TLS and HTTP/2. Empty: plain HTTP.",
    )
    tls_key: str = setting("CHAT_TLS_KEY", "", "PEM file with the certificate's private key.")
    grpc_address: str = setting(
        "CHAT_GRPC_ADDRESS",
        "",
        "Where the gRPC door listens, host:port; empty: nowhere. Without CHAT_TLS_CERT it must be a loopback address.",
    )
    allowed_hosts: str = setting(
        "CHAT_ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]", "Host names the site answers to, comma separated."
    )
    origins: str = setting(
        "CHAT_ORIGINS",
        "",
        "Full origins (scheme://host:port) whose pages may open WebSockets and send forms; "
        "empty: http (https with CHAT_TLS_CERT) on PORT at the allowed hosts.",
    )
    trust_proxy: bool = setting(
        "CHAT_TRUST_PROXY",
        False,
        "Believe X-Forwarded-Proto, X-Forwarded-Host and X-Forwarded-For of a proxy in front.",
    )
    https_only: bool = setting(
        "CHAT_HTTPS_ONLY",
        False,
        "Send requests that did not come by https there; health and metrics are exempt.",
    )
    hsts_s: int = setting(
        "CHAT_HSTS_S",
        0,
        "So long browsers remember to come by https only; 0: not at all.",
        between=(0, 63_072_000),
    )
    hsts_domain: bool = setting(
        "CHAT_HSTS_DOMAIN",
        False,
        "Let that hold for all hosts under this one's name, and let browsers ship with it (preload).",
    )
    language: str = setting(
        "CHAT_LANGUAGE",
        "en",
        "Language of the page where the browser names none we have.",
        choices=("en", "zh-hans"),
    )
    time_zone: str = setting("CHAT_TIME_ZONE", "UTC", "Time zone for display; storage is UTC.")
    guests: bool = setting(
        "CHAT_GUESTS", False, "Let people chat without an account, for seven days. `make run` turns it on."
    )
    sharing: bool = setting(
        "CHAT_SHARING",
        True,
        "Let people share snapshots of their chats by link, which opens without a sign-in. Off: no link shows a thing.",
    )
    signup: bool = setting("CHAT_SIGNUP", True, "Let people make their own account.")
    oidc_issuer: str = setting(
        "CHAT_OIDC_ISSUER",
        "",
        "Issuer of an OpenID Connect provider by which people may sign in. Empty: off.",
    )
    oidc_client_id: str = setting("CHAT_OIDC_CLIENT_ID", "", "What the provider calls this site.")
    oidc_client_secret: str = setting(
        "CHAT_OIDC_CLIENT_SECRET",
        "",
        "The site's secret at the provider; empty for a public client.",
        is_secret=True,
    )
    oidc_name: str = setting("CHAT_OIDC_NAME", "SSO", "The provider's name on the sign-in page.")
    oidc_scopes: str = setting("CHAT_OIDC_SCOPES", "openid profile", "Scopes to ask the provider for.")
    oidc_origins: str = setting(
        "CHAT_OIDC_ORIGINS",
        "",
        "Further origins (comma separated) at which the provider has its token and key endpoints; "
        "the site fetches from these and from the issuer's only.",
    )
    oidc_tls_cert: str = setting(
        "CHAT_OIDC_TLS_CERT", "", "PEM certificate to trust for the provider; empty: public authorities."
    )
    oidc_new_users: bool = setting(
        "CHAT_OIDC_NEW_USERS", True, "Make an account for whoever signs in there for the first time."
    )
    oidc_groups_claim: str = setting(
        "CHAT_OIDC_GROUPS_CLAIM", "groups", "Claim that lists a person's groups."
    )
    oidc_groups: str = setting(
        "CHAT_OIDC_GROUPS", "", "Groups of the provider as groups of the site: theirs=ours, ..."
    )
    oidc_tenants: str = setting(
        "CHAT_OIDC_TENANTS",
        "",
        "Groups of the provider as business lines (by slug): theirs=ours, ... The first that fits counts.",
    )
    oidc_staff_group: str = setting(
        "CHAT_OIDC_STAFF_GROUP",
        "",
        "Group of the provider whose members, and nobody else who signs in there, are staff.",
    )
    metrics_token: str = setting(
        "CHAT_METRICS_TOKEN",
        "",
        "Bearer token for /metrics from other hosts; loopback needs none.",
        is_secret=True,
    )
    log_level: str = setting(
        "CHAT_LOG_LEVEL", "INFO", "Least level that is logged.", choices=("DEBUG", "INFO", "WARNING", "ERROR")
    )

    # Answers
    db_threads: int = setting(
        "CHAT_DB_THREADS", 8, "Database connections and worker threads per process.", between=(1, 256)
    )
    max_message_chars: int = setting(
        "CHAT_MAX_MESSAGE_CHARS", 200_000, "Longest message a user may send.", between=(1, 10_000_000)
    )
    max_body_bytes: int = setting(
        "CHAT_MAX_BODY_BYTES", 2_000_000, "Largest request body.", between=(1000, 100_000_000)
    )
    max_import_bytes: int = setting(
        "CHAT_MAX_IMPORT_BYTES",
        20_000_000,
        "Largest file of conversations that is imported.",
        between=(1000, 500_000_000),
    )
    max_live_per_user: int = setting(
        "CHAT_MAX_LIVE_PER_USER",
        16,
        "Answers in the making per user; more are refused with 429.",
        between=(1, 100_000),
    )
    deadline_s: float = setting(
        "CHAT_DEADLINE_S",
        600.0,
        "Longest an answer may take from acceptance to its end.",
        between=(1, 86_400),
    )
    orphan_ttl_s: float = setting(
        "CHAT_ORPHAN_TTL_S",
        600.0,
        "An answer of a conversation that no page follows any more is ended as interrupted after so long.",
        between=(0.1, 86_400),
    )
    lease_s: float = setting(
        "CHAT_LEASE_S",
        5.0,
        "A running answer whose lease is older is adopted by another process.",
        between=(0.2, 600),
    )
    checkpoint_s: float = setting(
        "CHAT_CHECKPOINT_S", 1.0, "How often a running answer is stored.", between=(0.05, 60)
    )
    coalesce_ms: int = setting(
        "CHAT_COALESCE_MS", 50, "Longest a token waits for company on its way to the page.", between=(0, 1000)
    )
    coalesce_tokens: int = setting(
        "CHAT_COALESCE_TOKENS", 4, "Tokens that are sent without further wait.", between=(1, 1000)
    )
    usage_keep_days: int = setting(
        "CHAT_USAGE_KEEP_DAYS",
        0,
        "Older rows of the usage ledger are deleted, once their day is summed up; a week is always kept. 0: keep all.",
        between=(0, 36_500),
    )
    drain_s: float = setting(
        "CHAT_DRAIN_S",
        10.0,
        "On stop: time for running answers to finish or be handed over.",
        between=(0, 600),
    )

    # Semantic cache
    cache_enabled: bool = setting(
        "SEMCACHE_ENABLED", True, "Look for stored answers before asking the model."
    )
    cache_budget_ms: int = setting(
        "SEMCACHE_BUDGET_MS",
        150,
        "Longest a look-up may take before the model is asked.",
        between=(1, 10_000),
    )
    cache_max_entries: int = setting(
        "SEMCACHE_MAX_ENTRIES",
        100_000,
        "Entries kept in all; the least recently used go first.",
        between=(1, 100_000_000),
    )
    cache_max_per_owner: int = setting(
        "SEMCACHE_MAX_PER_OWNER",
        1000,
        "Private entries kept per user. Of a full rule or table, who has more entries than this loses theirs first.",
        between=(1, 10_000_000),
    )
    cache_shared_per_owner_per_hour: int = setting(
        "SEMCACHE_SHARED_PER_OWNER_PER_HOUR",
        100,
        "Answers of one user that rules may share within an hour; what comes after stays the user's own.",
        between=(0, 1_000_000),
    )
    cache_paced_replay: bool = setting(
        "SEMCACHE_PACED_REPLAY",
        False,
        "Give stored answers of rules that share as slowly as they were made, so that nobody learns by the clock what "
        "others have asked. Answers stay marked as stored.",
    )
    cache_again_at_once: int = setting(
        "SEMCACHE_AGAIN_AT_ONCE",
        2,
        "Answers made again behind the scenes at the same time, on all machines together. 0: none.",
        between=(0, 100),
    )
    cache_epoch: str = setting(
        "SEMCACHE_EPOCH", "1", "Knowledge epoch: change it and every older answer is out of scope."
    )

    @property
    def engine_addresses(self) -> tuple[str, ...]:
        """Of each engine, in the order in which they were named."""
        return tuple(address.strip() for address in self.engine_address.split(",") if address.strip())
