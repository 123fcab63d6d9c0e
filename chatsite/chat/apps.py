"""Registers the app and the site's system checks."""

from django.apps import AppConfig


class ChatConfig(AppConfig):
    name = "chatsite.chat"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from chatsite import checks  # noqa: F401 (registers)
