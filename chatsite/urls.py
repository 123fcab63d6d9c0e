"""The site's routes: one line per room."""

from __future__ import annotations

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path

from chatsite.api import api
from chatsite.engine_admin import engine_page
from chatsite.selftest import selftest_events, selftest_page

urlpatterns: list[URLPattern | URLResolver] = [
    path("", include("chatsite.chat.urls")),
    path("", include("chatsite.accounts.urls")),
    path("", include("chatsite.health")),
    path("", include("chatsite.v1.urls")),
    path("api/", api.urls),
    path("admin/engine/", admin.site.admin_view(engine_page), name="engine"),
    path("admin/selftest/", admin.site.admin_view(selftest_page), name="selftest"),
    path("admin/selftest/events", selftest_events, name="selftest-events"),
    path("admin/", admin.site.urls),
]
