"""The web process as one ASGI application: HTTP by Django, WebSockets by the chat."""

from __future__ import annotations

import os

from channels.routing import ProtocolTypeRouter, URLRouter
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatsite.settings")

http = get_asgi_application()  # loads the apps; the routes below need them

from django.conf import settings  # noqa: E402

from chatsite.chat.origin import OriginGate  # noqa: E402
from chatsite.routing import websocket_urlpatterns  # noqa: E402

application = ProtocolTypeRouter(
    {"http": http, "websocket": OriginGate(URLRouter(websocket_urlpatterns), settings.ORIGINS)}
)
