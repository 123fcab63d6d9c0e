"""Registers the app."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class AccountsConfig(AppConfig):
    name = "chatsite.accounts"
    verbose_name = _("Accounts and usage")
    default_auto_field = "django.db.models.BigAutoField"
