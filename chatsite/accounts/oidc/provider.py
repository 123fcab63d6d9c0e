"""The provider as the site sees it: where to send people, and who came back. All protocol work is Authlib's.

The only module of the site that fetches from other hosts: the issuer's origin and those that the operator names, by
https, without following redirects. Knows settings and claims, no users.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from authlib.common.errors import AuthlibBaseError
from authlib.integrations.django_client import DjangoIntegration, DjangoOAuth2App
from authlib.integrations.requests_client import OAuth2Session
from django.conf import settings
from joserfc.errors import JoseError
from requests import RequestException, Response

from chatsite.accounts.oidc.rules import is_safe, origin_of

METADATA = "/.well-known/openid-configuration"
# Of a provider that rotates its keys or moves its endpoints; a token by a key that is not known asks at once.
KNOWN_FOR_S = 3600.0
ANSWERS_WITHIN_S = 5.0
CLOCKS_DIFFER_BY_S = 60
# By a key pair only: with a shared secret whoever knows the public key could sign.
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")


class ProviderFailed(Exception):
    """The provider can't be reached, or what it says can't be believed. The message holds no secret."""


@dataclass(frozen=True, slots=True)
class Departure:
    """Where to send a browser, and what must be known again when it comes back."""

    url: str
    state: str
    nonce: str
    code_verifier: str


def depart(return_to: str) -> Departure:
    """The way to the provider, which sends people back to `return_to`. Raises ProviderFailed."""
    try:
        way = _client().create_authorization_url(return_to)
    except _FAILURES as error:
        raise ProviderFailed(type(error).__name__) from error
    return Departure(way["url"], way["state"], way["nonce"], way["code_verifier"])


def arrived(answer: Mapping[str, str], departure: Departure, return_to: str) -> dict[str, Any]:
    """The claims about the person whom the provider sent back with `answer`. Raises ProviderFailed.

    Believed is only a token for this site, by this issuer, for this departure, signed by one of its keys.
    """
    if not answer.get("code") or answer.get("state") != departure.state:
        raise ProviderFailed("no code, or not for what was asked here")
    if answer.get("iss", settings.CONFIG.oidc_issuer) != settings.CONFIG.oidc_issuer:
        raise ProviderFailed("another issuer answered")
    client = _client()
    try:
        token = client.fetch_access_token(
            return_to, code=answer["code"], code_verifier=departure.code_verifier
        )
        claims = client.parse_id_token(
            token, nonce=departure.nonce, claims_options=_expected(), leeway=CLOCKS_DIFFER_BY_S
        )
    except _FAILURES as error:
        raise ProviderFailed(type(error).__name__) from error
    if not claims or not isinstance(claims.get("sub"), str) or not claims["sub"]:
        raise ProviderFailed("no identity came with the token")
    return dict(claims)


def way_out(return_to: str) -> str | None:
    """Where people sign out at the provider; None where it has no such page. Raises ProviderFailed."""
    client = _client()
    try:
        if not client.load_server_metadata().get("end_session_endpoint"):
            return None
        way = client.create_logout_url(return_to, client_id=settings.CONFIG.oidc_client_id)
    except _FAILURES as error:
        raise ProviderFailed(type(error).__name__) from error
    return str(way["url"])


def forget() -> None:
    """What is known of the provider is asked again at the next need."""
    _made_for.cache_clear()


class _Session(OAuth2Session):
    """Fetches nothing but what an operator has named, and nothing that it is sent on to."""

    def request(self, method: str, url: str, **options: Any) -> Response:
        if origin_of(url) not in _origins():
            raise ProviderFailed("an endpoint is at an origin that CHAT_OIDC_ORIGINS does not name")
        self.trust_env = False  # neither proxies nor passwords of the environment
        self.verify = settings.CONFIG.oidc_tls_cert or True
        response: Response = super().request(
            method, url, **options | {"allow_redirects": False, "timeout": ANSWERS_WITHIN_S}
        )
        if response.status_code != 200:
            raise ProviderFailed(f"the provider answered {response.status_code}")
        return response


class _Client(DjangoOAuth2App):
    """Authlib's client with the doubts that it leaves to its user."""

    client_cls = _Session

    def load_server_metadata(self) -> dict[str, Any]:
        metadata: dict[str, Any] = super().load_server_metadata()
        if metadata.get("issuer") != settings.CONFIG.oidc_issuer:
            raise ProviderFailed("the provider calls itself by another name than CHAT_OIDC_ISSUER")
        offered = metadata.get("id_token_signing_alg_values_supported") or ["RS256"]
        usable = [algorithm for algorithm in offered if algorithm in ALGORITHMS]
        if not usable:  # joserfc takes an empty list for its own one, which has shared secrets
            raise ProviderFailed("the provider signs in no way that can be believed")
        metadata["id_token_signing_alg_values_supported"] = usable
        if not is_safe(origin_of(str(metadata.get("authorization_endpoint")))):
            raise ProviderFailed("people would be sent on without https")
        return metadata


_FAILURES = (AuthlibBaseError, JoseError, RequestException, LookupError, RuntimeError, ValueError, TypeError)


def _client() -> _Client:
    return _made_for(time.monotonic() // KNOWN_FOR_S, settings.CONFIG)


@lru_cache(maxsize=1)
def _made_for(hour: float, config: Any) -> _Client:
    return _Client(
        DjangoIntegration("oidc"),
        name="oidc",
        client_id=config.oidc_client_id,
        client_secret=config.oidc_client_secret or None,
        server_metadata_url=config.oidc_issuer.rstrip("/") + METADATA,
        client_kwargs={"scope": config.oidc_scopes, "code_challenge_method": "S256"},
    )


def _expected() -> dict[str, dict[str, Any]]:
    return {
        "iss": {"essential": True, "value": settings.CONFIG.oidc_issuer},
        "aud": {"essential": True, "value": settings.CONFIG.oidc_client_id},
        "sub": {"essential": True},
    }


def _origins() -> set[str]:
    """From where the site fetches."""
    named = (settings.CONFIG.oidc_issuer, *settings.CONFIG.oidc_origins.split(","))
    return {origin for url in named if url.strip() and is_safe(origin := origin_of(url.strip()))}
