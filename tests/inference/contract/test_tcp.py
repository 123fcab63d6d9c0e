"""The TCP door: TLS and a token, or nothing."""

from __future__ import annotations

import datetime
import ipaddress
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from inference.client import EngineClient
from inference.errors import EngineUnavailable, Unauthenticated
from inference.proto import engine_pb2 as pb
from inference.proto.engine_pb2_grpc import EngineStub
from inference.testing import EngineProcess
from tests.inference.contract.conftest import ask
from tests.inference.contract.test_contract import collect, text_of

TOKEN = "a-secret-token"


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[EngineProcess]:
    certificate, key = write_certificate(tmp_path)
    address = f"127.0.0.1:{free_port()}"
    argv = [sys.executable, "-m", "inference.testing", "--address", address, "--token", TOKEN]
    argv += ["--tls-cert", certificate, "--tls-key", key]
    engine = EngineProcess(address, argv, token=TOKEN, tls_cert=certificate)
    await engine.start()
    yield engine
    await engine.stop()


async def test_the_right_token_over_tls_is_served(engine: EngineProcess) -> None:
    client = engine.client()
    assert text_of(await collect(client.generate(ask("Hello")))).startswith("You said: Hello")
    await client.close()


@pytest.mark.parametrize("token", ["", "wrong"])
async def test_a_wrong_token_is_refused_for_calls_streams_and_health(
    engine: EngineProcess, token: str
) -> None:
    client = EngineClient(engine.address, token, engine.tls_cert)
    with pytest.raises(Unauthenticated):
        await client.stats()
    with pytest.raises(Unauthenticated):
        await collect(client.attach("8b9f2c4e-0000-4000-8000-000000000000"))
    assert await client.health() is False
    await client.close()


async def test_an_unknown_authority_is_not_trusted(engine: EngineProcess, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other, _ = write_certificate(tmp_path / "other")
    client = EngineClient(engine.address, TOKEN, other, call_timeout_s=2)
    with pytest.raises(EngineUnavailable):
        await client.stats()
    await client.close()


async def test_plain_text_is_not_served(engine: EngineProcess) -> None:
    async with grpc.aio.insecure_channel(engine.address) as channel:
        with pytest.raises(grpc.aio.AioRpcError):
            await EngineStub(channel).Stats(pb.StatsRequest(), timeout=2)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def write_certificate(folder: Path) -> tuple[str, str]:
    """A self-signed certificate for 127.0.0.1 and its key, as paths of PEM files."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "engine")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False
        )
        .sign(key, hashes.SHA256())
    )
    certificate_file, key_file = folder / "engine.pem", folder / "engine.key"
    certificate_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    pem = serialization.PrivateFormat.PKCS8
    key_file.write_bytes(key.private_bytes(serialization.Encoding.PEM, pem, serialization.NoEncryption()))
    return str(certificate_file), str(key_file)
