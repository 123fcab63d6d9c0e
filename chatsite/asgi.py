"""The web process as one ASGI application: HTTP by Django, its files from memory, WebSockets by the chat."""

from __future__ import annotations

import os

import django
from channels.routing import ProtocolTypeRouter, URLRouter
from django.core.signals import request_started
from django.db import close_old_connections, reset_queries

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatsite.settings")

django.setup(set_prefix=False)

# Each request's thread tidies up at its end: at the start of the next one there is nothing left to do.
request_started.disconnect(close_old_connections)
request_started.disconnect(reset_queries)

from django.conf import settings  # noqa: E402

from chatsite.chat.origin import OriginGate  # noqa: E402
from chatsite.handler import LoopHandler  # noqa: E402
from chatsite.kept_files import KeptFiles  # noqa: E402
from chatsite.routing import websocket_urlpatterns  # noqa: E402

application = ProtocolTypeRouter(
    {
        "http": KeptFiles(LoopHandler()),
        "websocket": OriginGate(URLRouter(websocket_urlpatterns), settings.ORIGINS),
    }
)
