"""Stored answers beside what the model says now, as staff asked to see it."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _


class CacheComparison(models.Model):
    """A question that the model answers afresh for staff, with a copy of the stored answer; for a day at most.

    `author` is whoever asked for it and `owner` whose question it is tried as, both opaque. `generation` made the
    stored answer: with that one's erasure this row goes, too. `is_same` is null where nothing could be compared.
    """

    class State(models.TextChoices):
        WAITING = "waiting", _("waiting")
        RUNNING = "running", _("running")
        DONE = "done", _("done")
        FAILED = "failed", _("failed")

    id = models.BigAutoField(primary_key=True)
    author = models.CharField(max_length=64)
    question = models.TextField()
    tenant = models.CharField(max_length=64, blank=True)
    owner = models.CharField(max_length=64, blank=True)
    model = models.CharField(max_length=200, blank=True)
    # The entry may be gone by now.
    entry = models.BigIntegerField()
    generation = models.UUIDField(null=True)
    stored_question = models.TextField()
    stored_answer = models.TextField()
    made = models.TextField(blank=True)
    is_whole = models.BooleanField(default=False)
    is_same = models.BooleanField(null=True)
    # The verifier's, of the first sentences.
    score = models.FloatField(null=True)
    took_ms = models.FloatField(default=0.0)
    state = models.CharField(max_length=16, choices=State.choices, default=State.WAITING)
    trouble = models.CharField(max_length=32, blank=True)
    created_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = _("comparison")
        verbose_name_plural = _("comparisons")
        constraints: ClassVar = [
            # Each of them takes a worker's time and the engine's.
            models.UniqueConstraint(
                fields=["author"],
                condition=Q(state__in=["waiting", "running"]),
                name="one_open_comparison_per_author",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.pk}: {self.state}"
