"""Routes of the chat page."""

from __future__ import annotations

from django.urls import path

from chatsite.chat import shared, views

urlpatterns = [
    path("", views.chat, name="chat"),
    path("c/<uuid:conversation>", views.chat, name="conversation"),
    path("s/<secret>", shared.shared, name="shared"),
]
