"""TLS and HTTP/2 by the web server itself, with the settings of docs/operations.md."""

from __future__ import annotations

import json
import os
import ssl
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from inference.testing import script_text
from tests.livesite import PROJECT, LiveSite, free_port
from tests.patience import PATIENCE_S

CHAT = "/v1/chat/completions"


@pytest.fixture(scope="module")
def pem(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for this host that signs itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number()).not_valid_before(now - timedelta(hours=1))
    builder = builder.not_valid_after(now + timedelta(days=1))
    names = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    certificate = builder.add_extension(names, critical=False).sign(key, hashes.SHA256())
    folder = tmp_path_factory.mktemp("tls")
    cert, private = folder / "cert.pem", folder / "key.pem"
    cert.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return cert, private


@pytest.fixture(scope="module")
def secure(site: LiveSite, pem: tuple[Path, Path]) -> Iterator[httpx2.Client]:
    """A client that speaks HTTP/2 to a second web process of the site, which has the certificate."""
    port = free_port()
    cert, key = pem
    environ = site.environ | {"PORT": str(port), "CHAT_TLS_CERT": str(cert), "CHAT_TLS_KEY": str(key)}
    argv = [sys.executable, "manage.py", "serve"]
    web = subprocess.Popen(argv, env=environ, cwd=PROJECT, stdout=subprocess.PIPE, text=True)
    try:
        assert web.stdout is not None
        assert web.stdout.readline() == f"web: listening on 127.0.0.1:{port} with TLS\n"
        trusted = ssl.create_default_context(cafile=str(cert))
        headers = {"Authorization": f"Bearer {site.key('ann')}"}
        with httpx2.Client(
            base_url=f"https://127.0.0.1:{port}", http2=True, verify=trusted, headers=headers, timeout=60
        ) as client:
            yield client
    finally:
        web.terminate()
        web.communicate(timeout=PATIENCE_S)


def test_an_answer_is_streamed_over_http_2(secure: httpx2.Client) -> None:
    text = "abcdefghijkl" * 40
    body = {
        "model": "scripted",
        "messages": [{"role": "user", "content": script_text(text=text, delay_ms=2)}],
        "stream": True,
    }
    with secure.stream("POST", CHAT, json=body) as response:
        assert response.http_version == "HTTP/2"
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        lines = [line.removeprefix("data: ") for line in response.iter_lines() if line.startswith("data: ")]
    assert lines[-1] == "[DONE]"
    chunks = [json.loads(line) for line in lines[:-1]]
    deltas = [chunk["choices"][0]["delta"].get("content") for chunk in chunks]
    assert "".join(delta for delta in deltas if delta) == text
    assert len(chunks) > 10, "it came in one piece"


def test_requests_share_a_connection_and_none_waits_for_the_other(secure: httpx2.Client) -> None:
    slow = {
        "model": "scripted",
        "messages": [{"role": "user", "content": script_text(tokens=2000, delay_ms=20)}],
        "stream": True,
    }
    with secure.stream("POST", CHAT, json=slow) as streaming:
        first = next(streaming.iter_lines())
        models = secure.get("/v1/models")
        assert first.startswith("data: ") and models.http_version == "HTTP/2"
        assert models.status_code == 200
    # Left in mid-stream: the stream is reset, and the connection goes on.
    assert secure.get("/v1/models").status_code == 200


def test_a_body_that_is_too_large_harms_only_itself(secure: httpx2.Client) -> None:
    response = secure.post(CHAT, content=b'{"a":"' + b"x" * 3_000_000 + b'"}')
    assert (response.status_code, response.http_version) == (413, "HTTP/2")
    assert response.json()["error"]["code"] == "body_too_large"
    assert secure.get("/v1/models").status_code == 200


def test_the_site_knows_that_it_is_secure(secure: httpx2.Client) -> None:
    """Sign-in works over TLS: cookies are for TLS only, and forms may come from the https origin."""
    page = secure.get("/signin", headers={"Authorization": ""})
    assert "secure" in page.headers["set-cookie"].lower()
    form = {"username": "nobody", "password": "x", "csrfmiddlewaretoken": secure.cookies["__Host-csrftoken"]}
    headers = {"Origin": str(secure.base_url).rstrip("/"), "Referer": f"{secure.base_url}/signin"}
    assert secure.post("/signin", data=form, headers=headers).status_code == 200


def test_http_1_1_is_served_over_tls_too(secure: httpx2.Client, pem: tuple[Path, Path]) -> None:
    trusted = ssl.create_default_context(cafile=str(pem[0]))
    response = httpx2.get(f"{secure.base_url}/health/live", verify=trusted)
    assert (response.status_code, response.http_version) == (200, "HTTP/1.1")


def test_old_versions_of_tls_are_refused(secure: httpx2.Client, pem: tuple[Path, Path]) -> None:
    old = ssl.create_default_context(cafile=str(pem[0]))
    old.set_ciphers("ALL:@SECLEVEL=0")
    old.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
    with pytest.warns(DeprecationWarning):
        old.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises(httpx2.ConnectError):
        httpx2.get(f"{secure.base_url}/health/live", verify=old)


@pytest.mark.parametrize("spoiled", ["missing", "no PEM", "a foreign key"])
def test_a_certificate_that_cannot_be_used_stops_the_start(
    site: LiveSite, pem: tuple[Path, Path], tmp_path: Path, spoiled: str
) -> None:
    key = tmp_path / "key.pem"
    if spoiled == "no PEM":
        key.write_text("not a key")
    if spoiled == "a foreign key":
        other = ec.generate_private_key(ec.SECP256R1())
        encryption = serialization.NoEncryption()
        pkcs8 = serialization.PrivateFormat.PKCS8
        key.write_bytes(other.private_bytes(serialization.Encoding.PEM, pkcs8, encryption))
    environ = os.environ | site.environ | {"CHAT_TLS_CERT": str(pem[0]), "CHAT_TLS_KEY": str(key)}
    argv = [sys.executable, "manage.py", "serve"]
    done = subprocess.run(
        argv, env=environ, cwd=PROJECT, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 1
    assert "CHAT_TLS_CERT and CHAT_TLS_KEY cannot be used" in done.stderr
