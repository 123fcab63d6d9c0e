"""Registers the app and the site's system checks."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class ChatConfig(AppConfig):
    name = "chatsite.chat"
    verbose_name = _("Chat")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from chatsite import celery, checks  # noqa: F401 (registers; who sends a task must know the broker)
