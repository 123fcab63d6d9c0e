"""What look-ups decided and what people said about it."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils.translation import gettext_lazy as _

from semcache.models.rules import CacheRule


class CacheLook(models.Model):
    """What one look-up decided, for a week at most. Unlogged: a crash loses it, and nothing else.

    `question` is empty where the words are not this table's to keep; `agreement` says how far the model's answer was
    what a shadow rule would have served.
    """

    id = models.BigAutoField(primary_key=True)
    asked_at = models.DateTimeField(db_index=True)
    # No constraint: rows are written late, and the rule may be gone by then.
    rule = models.ForeignKey(
        CacheRule, on_delete=models.SET_NULL, null=True, related_name="looks", db_constraint=False
    )
    outcome = models.CharField(max_length=16)
    reason = models.CharField(max_length=32)
    sharing = models.CharField(max_length=16)
    tenant = models.CharField(max_length=64)
    model = models.CharField(max_length=200)
    scope = models.CharField(max_length=64)
    prompt_sha256 = models.CharField(max_length=64)
    question = models.TextField(blank=True)
    neighbour = models.BigIntegerField(null=True)
    neighbour_question = models.TextField(blank=True)
    similarity = models.FloatField(null=True)
    is_guarded = models.BooleanField(default=False)
    score = models.FloatField(null=True)
    agreement = models.FloatField(null=True)
    # Of the question's own answer, with which the row is erased; null where the words are everybody's.
    generation = models.UUIDField(null=True)
    took_ms = models.FloatField(default=0.0)

    class Meta:
        verbose_name = _("look-up")
        verbose_name_plural = _("look-ups")

    def __str__(self) -> str:
        return f"{self.outcome} ({self.reason})"


class CacheComplaint(models.Model):
    """Two questions, as hashes, of which the first must never again be answered with the second's stored answer."""

    id = models.BigAutoField(primary_key=True)
    scope = models.CharField(max_length=64)
    asked_sha256 = models.CharField(max_length=64)
    # "" where only this very question is meant.
    reading_sha256 = models.CharField(max_length=64)
    stored_sha256 = models.CharField(max_length=64)
    why = models.CharField(max_length=16)
    # The answers to both questions in somebody's own scope: the pair is erased with either. [] in shared scopes.
    generations = ArrayField(models.UUIDField(), default=list, db_default=[])
    created_at = models.DateTimeField()

    class Meta:
        verbose_name = _("complaint")
        verbose_name_plural = _("complaints")
        indexes: ClassVar = [models.Index(fields=["scope", "stored_sha256"], name="complaint_of_entry")]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["scope", "asked_sha256", "stored_sha256"], name="one_complaint_per_pair"
            ),
        ]

    def __str__(self) -> str:
        return self.why
