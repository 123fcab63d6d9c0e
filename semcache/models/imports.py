"""Answers that are brought in from a file."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from semcache.models.rules import CacheRule


class CacheImport(models.Model):
    """Questions and answers from a file, stored by a worker in batches; it goes on where it was interrupted."""

    class State(models.TextChoices):
        WAITING = "waiting", _("waiting")
        RUNNING = "running", _("running")
        DONE = "done", _("done")
        FAILED = "failed", _("failed")

    id = models.BigAutoField(primary_key=True)
    rule = models.ForeignKey(CacheRule, on_delete=models.CASCADE, related_name="imports")
    tenant = models.CharField(_("business line"), max_length=64, blank=True)
    system_prompt = models.TextField(_("system prompt"), blank=True)
    file_name = models.CharField(max_length=200)
    # [[question, answer], ...]; emptied when all are stored.
    rows = models.JSONField(default=list)
    num_rows = models.PositiveIntegerField()
    num_done = models.PositiveIntegerField(default=0)
    num_refused = models.PositiveIntegerField(default=0)
    state = models.CharField(max_length=16, choices=State.choices, default=State.WAITING)
    trouble = models.TextField(blank=True)
    created_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = _("import")
        verbose_name_plural = _("imports")

    def __str__(self) -> str:
        return self.file_name
