"""Registers the app."""

from django.apps import AppConfig


class ChatConfig(AppConfig):
    name = "chatsite.chat"
    default_auto_field = "django.db.models.BigAutoField"
