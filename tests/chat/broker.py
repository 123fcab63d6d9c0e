"""A stand-in for the queue to the workers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db import connections
from kombu.exceptions import OperationalError

from chatsite.chat import again


@dataclass
class Broker:
    """Stands in for the queue: what was sent, as it would be read by a worker."""

    orders: list[again.Order] = field(default_factory=list)
    sent: list[dict[str, Any]] = field(default_factory=list)
    is_away: bool = False

    def send_task(self, name: str, args: list[Any], **options: Any) -> None:
        if self.is_away:
            raise OperationalError
        self.sent.append({"name": name, **options})
        order = again.taken(UUID(*args))
        connections.close_all()  # the sender's thread would keep its own
        assert order is not None
        self.orders.append(order)
