"""The WebSocket routes."""

from __future__ import annotations

from typing import Any

from django.urls import path, re_path

from chatsite.chat.consumers import ChatConsumer


async def refuse(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Any other path: 403 at the handshake instead of an exception."""
    await receive()
    await send({"type": "websocket.close"})


websocket_urlpatterns = [
    path("ws/chat", ChatConsumer.as_asgi(), name="ws-chat"),
    re_path(r"", refuse),  # type: ignore[arg-type]
]
