"""System checks of a process that serves or works: what must be set, each with one clear line.

They run with `serve`, `check --deploy` and in the worker; commands that need less run without.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from chatsite.accounts.oidc import rules
from chatsite.hosts import is_loopback

NEEDED = {
    "secret_key": ("SECRET_KEY", "sessions would end with this process; give it a long random text"),
    "database_url": (
        "DATABASE_URL",
        "there is no database; start `make run` with the same DATA_DIR, or name yours: postgresql://...",
    ),
    "redis_url": ("REDIS_URL", "there is no broker; `make run` starts one, or name yours: redis://..."),
}


@register("serving", deploy=True)
def sign_in_by_provider(app_configs: Sequence[Any] | None = None, **kwargs: Any) -> list[CheckMessage]:
    """An error for each setting of the provider by which nobody could sign in, or the wrong people."""
    config = settings.CONFIG
    if not config.oidc_issuer:
        return []
    troubles = []
    if not rules.is_safe(rules.origin_of(config.oidc_issuer)):
        troubles.append(("E011", "CHAT_OIDC_ISSUER must be an https:// URL"))
    if not config.oidc_client_id:
        troubles.append(("E012", "CHAT_OIDC_CLIENT_ID is not set: the provider does not know who asks"))
    for name, mapping in (("GROUPS", config.oidc_groups), ("TENANTS", config.oidc_tenants)):
        try:
            rules.pairs(mapping)
        except ValueError as error:
            troubles.append(("E013", f"CHAT_OIDC_{name}: {error}"))
    return [Error(message, id=f"chatsite.{number}") for number, message in troubles]


@register("serving", deploy=True)
def way_by_https(app_configs: Sequence[Any] | None = None, **kwargs: Any) -> list[CheckMessage]:
    """An error where everybody would be sent in a circle: nothing could tell that a request came by https."""
    config = settings.CONFIG
    if config.https_only and not (config.trust_proxy or config.tls_cert):
        message = "CHAT_HTTPS_ONLY needs CHAT_TRUST_PROXY or CHAT_TLS_CERT, or everybody is sent in a circle"
        return [Error(message, id="chatsite.E014")]
    return []


@register("serving", deploy=True)
def private_grpc(app_configs: Sequence[Any] | None = None, **kwargs: Any) -> list[CheckMessage]:
    """An error for a gRPC door at which others on the way could read keys."""
    config = settings.CONFIG
    host, _, port = config.grpc_address.rpartition(":")
    if not config.grpc_address:
        return []
    if not host or not port.isdigit():
        return [Error("CHAT_GRPC_ADDRESS must be host:port", id="chatsite.E021")]
    if config.tls_cert or is_loopback(host.strip("[]")):
        return []
    text = "CHAT_GRPC_ADDRESS is reachable from outside and needs CHAT_TLS_CERT and CHAT_TLS_KEY"
    return [Error(text, id="chatsite.E022")]


@register("serving", deploy=True)
def engines(app_configs: Sequence[Any] | None = None, **kwargs: Any) -> list[CheckMessage]:
    """An error where no engine is named, or one of them twice: it would be asked twice."""
    addresses = settings.CONFIG.engine_addresses
    if not addresses or len(set(addresses)) < len(addresses):
        return [Error("ENGINE_ADDRESS must name one engine or more, each once", id="chatsite.E031")]
    return []


@register("serving", deploy=True)
def needed_settings(app_configs: Sequence[Any] | None = None, **kwargs: Any) -> list[CheckMessage]:
    """An error for each setting without which nothing can be served."""
    return [
        Error(f"{variable} is not set: {consequence}", id=f"chatsite.E00{number}")
        for number, (field, (variable, consequence)) in enumerate(NEEDED.items(), 1)
        if not getattr(settings.CONFIG, field)
    ]
