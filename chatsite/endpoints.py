"""Where the web server listens: one TCP port, with TLS and HTTP/2 where a certificate is given.

Knows Twisted's endpoints and PEM files. HTTP/2 is agreed on within TLS (ALPN); the server says by its factory that it
has it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from OpenSSL import SSL, crypto
from twisted.internet.endpoints import SSL4ServerEndpoint, TCP4ServerEndpoint, TCP6ServerEndpoint
from twisted.internet.ssl import CertificateOptions

CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


class CertificateUnusable(Exception):
    """The certificate or its key cannot be read, or do not belong together."""


def endpoint(reactor: Any, port: int, bind: str, tls: CertificateOptions | None = None) -> Any:
    """Listens on `port` of the address `bind` when it is told to."""
    host = bind.strip("[]")
    if tls is not None:
        return SSL4ServerEndpoint(reactor, port, tls, interface=host)
    kind = TCP6ServerEndpoint if ":" in host else TCP4ServerEndpoint
    return kind(reactor, port, interface=host)


def certificate(cert: str, key: str) -> CertificateOptions:
    """Of two PEM files; the first holds the server's certificate, then those between it and a known authority.

    TLS 1.2 at least. Raises CertificateUnusable.
    """
    try:
        chain = [
            crypto.load_certificate(crypto.FILETYPE_PEM, pem)
            for pem in CERTIFICATE.findall(Path(cert).read_bytes())
        ]
        private = crypto.load_privatekey(crypto.FILETYPE_PEM, Path(key).read_bytes())
        options = CertificateOptions(private, chain[0], extraCertChain=chain[1:])
        options.getContext().check_privatekey()
    except (OSError, IndexError, ValueError, TypeError, crypto.Error, SSL.Error) as error:
        raise CertificateUnusable(f"CHAT_TLS_CERT and CHAT_TLS_KEY cannot be used: {error}") from error
    return options
