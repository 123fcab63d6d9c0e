"""A small OpenID Connect provider on loopback: discovery, rotating RS256 keys, codes with PKCE, tokens as told.

It checks what a provider checks (client, redirect, code once, verifier) and lets a test make each of its answers wrong.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

CLIENT, SECRET = "rill", "the-secret-of-the-site"


def b64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def part(value: dict[str, Any]) -> str:
    return b64(json.dumps(value).encode())


class SigningKey:
    def __init__(self) -> None:
        self.kid = secrets.token_hex(4)
        self._key = rsa.generate_private_key(65537, 2048)

    def sign(self, claims: dict[str, Any]) -> str:
        signed = f"{part({'alg': 'RS256', 'kid': self.kid})}.{part(claims)}"
        return f"{signed}.{b64(self._key.sign(signed.encode(), padding.PKCS1v15(), SHA256()))}"

    def jwk(self) -> dict[str, Any]:
        numbers = self._key.public_key().public_numbers()
        n, e = numbers.n.to_bytes(256, "big"), numbers.e.to_bytes(3, "big")
        return {"kty": "RSA", "use": "sig", "alg": "RS256", "kid": self.kid, "n": b64(n), "e": b64(e)}

    def pem(self) -> bytes:
        return self._key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


class Provider:
    """`issued` holds all secrets that it ever gave; the hooks change answers: `metadata`, `claims`, `token`."""

    def __init__(self, url: str) -> None:
        self.issuer = url
        self.key = SigningKey()
        self.published = [self.key]
        self.issued: list[str] = [SECRET]
        self.asked: list[str] = []
        self.metadata: Callable[[dict[str, Any]], dict[str, Any]] = lambda data: data
        self.claims: Callable[[dict[str, Any]], dict[str, Any]] = lambda claims: claims
        self.token: Callable[[dict[str, Any]], str] = self.signed
        self.redirect_to = ""
        self._codes: dict[str, tuple[dict[str, str], dict[str, Any]]] = {}

    def signed(self, claims: dict[str, Any]) -> str:
        """By the key of this moment."""
        return self.key.sign(claims)

    def rotate(self) -> None:
        """Signs with a new key, and publishes no other."""
        self.key = SigningKey()
        self.published = [self.key]

    def consent(self, url: str, sub: str, **claims: Any) -> dict[str, str]:
        """What a browser brings back after somebody said yes at `url`."""
        asked = dict(parse_qsl(urlsplit(url).query))
        assert asked["response_type"] == "code" and asked["code_challenge_method"] == "S256"
        assert asked["client_id"] == CLIENT and "openid" in asked["scope"].split()
        code = secrets.token_urlsafe(16)
        self._codes[code] = (asked, {"sub": sub, **claims})
        self.issued += [code, asked["state"], asked["nonce"]]
        return {"code": code, "state": asked["state"]}

    def answer(self, path: str, form: dict[str, str], authorization: str) -> tuple[int, dict[str, Any]]:
        self.asked.append(path)
        match path:
            case "/.well-known/openid-configuration":
                return 200, self.metadata(self._metadata())
            case "/jwks":
                return 200, {"keys": [key.jwk() for key in self.published]}
            case "/token":
                return self._exchange(form, authorization)
        return 404, {}

    def _metadata(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/jwks",
            "end_session_endpoint": f"{self.issuer}/logout",
            "id_token_signing_alg_values_supported": ["RS256", "HS256", "none"],
            "code_challenge_methods_supported": ["S256"],
        }

    def _exchange(self, form: dict[str, str], authorization: str) -> tuple[int, dict[str, Any]]:
        expected = "Basic " + base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        asked, person = self._codes.pop(form.get("code", ""), ({}, {}))
        challenge = b64(hashlib.sha256(form.get("code_verifier", "").encode()).digest())
        is_right = (
            asked and challenge == asked["code_challenge"] and form["redirect_uri"] == asked["redirect_uri"]
        )
        if not is_right or authorization != expected:
            return 400, {"error": "invalid_grant"}
        now = int(time.time())
        claims = {
            "iss": self.issuer,
            "aud": CLIENT,
            "iat": now,
            "exp": now + 300,
            "nonce": asked["nonce"],
            **person,
        }
        access, identity = secrets.token_urlsafe(24), self.token(self.claims(claims))
        self.issued += [access, identity, form["code_verifier"]]
        return 200, {"access_token": access, "token_type": "Bearer", "expires_in": 300, "id_token": identity}


def hs256_with_public_key(key: SigningKey, claims: dict[str, Any]) -> str:
    signed = f"{part({'alg': 'HS256', 'kid': key.kid})}.{part(claims)}"
    return f"{signed}.{b64(hmac.digest(key.pem(), signed.encode(), 'sha256'))}"


def unsigned(claims: dict[str, Any]) -> str:
    return f"{part({'alg': 'none'})}.{part(claims)}."


@contextmanager
def identity_provider() -> Iterator[Provider]:
    """A provider that runs inside the block."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._reply({})

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            self._reply({name: values[0] for name, values in parse_qs(body).items()})

        def _reply(self, form: dict[str, str]) -> None:
            if provider.redirect_to and not self.path.startswith("/.well-known"):
                self.send_response(302)
                self.send_header("Location", provider.redirect_to)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            status, answer = provider.answer(self.path, form, self.headers.get("Authorization", ""))
            body = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    provider = Provider(f"http://127.0.0.1:{server.server_address[1]}")
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
