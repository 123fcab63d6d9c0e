"""Routes of the chat page."""

from __future__ import annotations

from django.urls import path

from chatsite.chat import views

urlpatterns = [
    path("", views.chat, name="chat"),
    path("c/<uuid:conversation>", views.chat, name="conversation"),
]
