"""The client through which the process asks the one engine of these tests."""

from __future__ import annotations

from chatsite.engines import engines
from inference.client import EngineClient


def client() -> EngineClient:
    (only,) = engines().every
    return only.client
