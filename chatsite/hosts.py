"""Which hosts are this machine itself. Knows names and addresses; resolves nothing."""

from __future__ import annotations

from ipaddress import ip_address


def is_loopback(host: str) -> bool:
    """`host` is a name or an address, IPv6 without brackets."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
