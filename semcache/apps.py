"""Registers the app."""

from django.apps import AppConfig


class SemcacheConfig(AppConfig):
    name = "semcache"
    verbose_name = "Semantic cache"
    default_auto_field = "django.db.models.BigAutoField"
